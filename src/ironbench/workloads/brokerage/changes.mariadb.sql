-- The other transactions that write, as functions for logic=server. They follow the same rules as the scripts with the
-- same names.
create or replace function brokerage_trade_update(
    p_frame int, p_trades text, p_account bigint, p_symbol varchar(15), p_from datetime(3), p_to datetime(3),
    p_most_account bigint, p_most int, p_most_updates int
) returns longtext modifies sql data
begin
    declare v_chosen text default brokerage_past_trades(
        p_frame, p_trades, p_account, p_symbol, p_from, p_to, p_most_account, p_most
    ) ;
    if p_frame = 1 then
        update (select id from json_table(v_chosen, '$[*]' columns (id bigint path '$')) listed limit p_most_updates) first_ones
        straight_join trade on t_id = id
        set t_exec_name = case
            when t_exec_name like '% X %' then replace(t_exec_name, ' X ', ' ') else replace(t_exec_name, ' ', ' X ') end;
    elseif p_frame = 2 then
        update (select id from json_table(v_chosen, '$[*]' columns (id bigint path '$')) listed limit p_most_updates) first_ones
        straight_join settlement on se_t_id = id
        set se_cash_type = case
            when se_cash_type like '% account' then replace(se_cash_type, ' account', '')
            else concat(se_cash_type, ' account') end;
    else
        update (select id from json_table(v_chosen, '$[*]' columns (id bigint path '$')) listed limit p_most_updates) first_ones
        straight_join cash_transaction on ct_t_id = id
        set ct_name = case
            when ct_name like '% shares of %' then replace(ct_name, ' shares of ', ' units of ')
            else replace(ct_name, ' units of ', ' shares of ') end;
    end if;
    return brokerage_trades(v_chosen, 1) ;
end;
create or replace function brokerage_market_feed(p_ticker text, p_time datetime(3)) returns text modifies sql data
begin
    -- Rows are locked in the order of their symbols, so that concurrent calls do not deadlock.
    declare v_hits int;
    declare v_ids, v_triggered text;
    update (
        select symbol, price, traded
        from (
            select symbol, price, sum(qty) over (partition by symbol) as traded,
                row_number() over (partition by symbol order by place desc) as newest
            from json_table(p_ticker, '$[*]' columns (
                place for ordinality, symbol varchar(15) path '$.symbol', price decimal(8,2) path '$.price',
                qty int path '$.qty'
            )) entry
        ) numbered
        where newest = 1 order by symbol limit 1000
    ) latest
    straight_join last_trade on lt_s_symb = symbol
    set lt_price = price, lt_vol = lt_vol + traded, lt_dts = p_time;
    select count(*), coalesce(json_arrayagg(tr_t_id), '[]'),
        coalesce(group_concat(concat(tr_t_id, ' ', tr_s_symb, ' ', tr_bid_price) order by tr_t_id), '')
    into v_hits, v_ids, v_triggered
    from (
        select distinct tr_t_id, tr_s_symb, tr_bid_price
        from json_table(p_ticker, '$[*]' columns (
            symbol varchar(15) path '$.symbol', price decimal(8,2) path '$.price'
        )) entry
        straight_join trade_request on tr_s_symb = symbol
            and case when tr_tt_id = 'TLS' then tr_bid_price <= price else tr_bid_price >= price end
        for update
    ) hit;
    if v_hits > 0 then
        update json_table(v_ids, '$[*]' columns (id bigint path '$')) hit straight_join trade on t_id = id
        set t_st_id = 'SBMT', t_dts = p_time;
        insert into trade_history (th_t_id, th_st_id, th_dts)
        select id, 'SBMT', p_time from json_table(v_ids, '$[*]' columns (id bigint path '$')) hit;
        delete trade_request from json_table(v_ids, '$[*]' columns (id bigint path '$')) hit
        straight_join trade_request on tr_t_id = id;
    end if;
    return v_triggered;
end;
create or replace function brokerage_data_maintenance(
    p_table int, p_customer bigint, p_account bigint, p_company bigint, p_symbol varchar(15), p_day int, p_volume int
) returns int modifies sql data
begin
    declare v_place bigint;
    declare v_old, v_new varchar(15) ;
    case p_table
        when 1 then
            update account_permission set ap_acl = case when ap_acl = '1111' then '0011' else '1111' end
            where ap_ca_id = p_account;
        when 2 then
            if p_customer = 0 then
                select co_ad_id into v_place from company where co_id = p_company;
            else
                select c_ad_id into v_place from customer where c_id = p_customer;
            end if;
            update address set ad_line2 = case when ad_line2 = 'door 10' then 'door 22' else 'door 10' end
            where ad_id = v_place;
        when 3 then
            update company set co_sp_rate = case when co_sp_rate = 'ABA' then 'AAA' else 'ABA' end
            where co_id = p_company;
        when 4 then
            update customer set c_email_2 = case when c_email_2 like '%@work.example'
                then replace(c_email_2, '@work.example', '@post.example')
                else replace(c_email_2, '@post.example', '@work.example') end
            where c_id = p_customer;
        when 5 then
            -- Replaces the customer's country tax rate with the next one; the last one is replaced with the first.
            select cx_tx_id, coalesce(min(tx_id), 'C001') into v_old, v_new
            from customer_taxrate left join taxrate on tx_id > cx_tx_id and tx_id like 'C%'
            where cx_c_id = p_customer and cx_tx_id like 'C%' group by cx_tx_id;
            update customer_taxrate set cx_tx_id = v_new where cx_c_id = p_customer and cx_tx_id = v_old;
        when 6 then
            update daily_market set dm_vol = dm_vol + p_volume
            where dm_s_symb = p_symbol and extract(day from dm_date) = p_day;
        when 7 then
            update exchange set ex_desc = case when ex_desc like '%, as of today'
                then replace(ex_desc, ', as of today', '') else concat(ex_desc, ', as of today') end;
        when 8 then
            update financial set fi_qtr_start_date = case
                when extract(day from fi_qtr_start_date) = 1 then fi_qtr_start_date + interval '1' day
                else fi_qtr_start_date - interval '1' day end
            where fi_co_id = p_company;
        when 9 then
            update news_item set ni_dts = ni_dts + interval '1' day
            where ni_id in (select nx_ni_id from news_xref where nx_co_id = p_company) ;
        when 10 then
            update security set s_exch_date = s_exch_date + interval '1' day where s_symb = p_symbol;
        when 11 then
            update taxrate set tx_name = case when tx_name like '% percent'
                then replace(tx_name, ' percent', ' per cent') else replace(tx_name, ' per cent', ' percent') end
            where tx_id in (select cx_tx_id from customer_taxrate where cx_c_id = p_customer) ;
        else
            -- Replaces the first security on a watch list with the next security that is not on it.
            select wl_id, min(wi_s_symb) into v_place, v_old
            from watch_list join watch_item on wi_wl_id = wl_id where wl_c_id = p_customer group by wl_id;
            select min(s_symb) into v_new from security
            where s_symb > v_old and s_symb not in (select wi_s_symb from watch_item where wi_wl_id = v_place) ;
            update watch_item set wi_s_symb = v_new where wi_wl_id = v_place and wi_s_symb = v_old;
    end case;
    return p_table;
end;
