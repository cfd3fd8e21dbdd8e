-- The other transactions that write, as functions for logic=server. They follow the same rules as the scripts with the
-- same names.
create or replace function brokerage_trade_update(
    p_frame integer, p_trades json, p_account bigint, p_symbol text, p_from timestamp, p_to timestamp, p_most_account bigint,
    p_most integer, p_most_updates integer
) returns json
language plpgsql as $$
    declare
        chosen bigint[] := brokerage_past_trades(
            p_frame, p_trades, p_account, p_symbol, p_from, p_to, p_most_account, p_most
        ) ;
    begin
        if p_frame = 1 then
            update trade set t_exec_name = case
                when t_exec_name like '% X %' then replace(t_exec_name, ' X ', ' ') else replace(t_exec_name, ' ', ' X ') end
            where t_id = any(chosen[:p_most_updates]) ;
        elsif p_frame = 2 then
            update settlement set se_cash_type = case
                when se_cash_type like '% account' then replace(se_cash_type, ' account', '')
                else concat(se_cash_type, ' account') end
            where se_t_id = any(chosen[:p_most_updates]) ;
        else
            update cash_transaction set ct_name = case
                when ct_name like '% shares of %' then replace(ct_name, ' shares of ', ' units of ')
                else replace(ct_name, ' units of ', ' shares of ') end
            where ct_t_id = any(chosen[:p_most_updates]) ;
        end if;
        return brokerage_trades(chosen, true) ;
    end
$$;
create or replace function brokerage_market_feed(p_ticker json, p_time timestamp) returns text
language plpgsql as $$
    -- Rows are locked in the order of their symbols, so that concurrent calls do not deadlock.
    declare
        triggered text;
    begin
        with entry as (
            select symbol, price, qty, place
            from rows from (json_to_recordset(p_ticker) as (symbol text, price numeric, qty integer))
                with ordinality as entry (symbol, price, qty, place)
        ), latest as (
            select symbol, price, traded
            from (
                select symbol, price, sum(qty) over (partition by symbol) as traded,
                    row_number() over (partition by symbol order by place desc) as newest
                from entry
            ) numbered
            where newest = 1
        ), locked as materialized (
            select lt_s_symb from last_trade where lt_s_symb in (select symbol from entry) order by lt_s_symb for update
        )
        update last_trade set lt_price = price, lt_vol = lt_vol + traded, lt_dts = p_time
        from locked join latest on symbol = locked.lt_s_symb
        where last_trade.lt_s_symb = locked.lt_s_symb;
        with entry as (
            select symbol, price from json_to_recordset(p_ticker) as entry (symbol text, price numeric)
        ), hit as (
            delete from trade_request using entry
            where tr_s_symb = symbol
                and case when tr_tt_id = 'TLS' then tr_bid_price <= price else tr_bid_price >= price end
            returning tr_t_id, tr_s_symb, tr_bid_price
        ), submitted as (
            update trade set t_st_id = 'SBMT', t_dts = p_time from hit where t_id = tr_t_id
        ), noted as (
            insert into trade_history (th_t_id, th_st_id, th_dts) select tr_t_id, 'SBMT', p_time from hit
        )
        select coalesce(string_agg(concat(tr_t_id, ' ', tr_s_symb, ' ', tr_bid_price), ',' order by tr_t_id), '')
        into triggered from hit;
        return triggered;
    end
$$;
create or replace function brokerage_data_maintenance(
    p_table integer, p_customer bigint, p_account bigint, p_company bigint, p_symbol text, p_day integer, p_volume integer
) returns integer
language plpgsql as $$
    declare
        place bigint;
        old_one text;
        new_one text;
    begin
        case p_table
            when 1 then
                update account_permission set ap_acl = case when ap_acl = '1111' then '0011' else '1111' end
                where ap_ca_id = p_account;
            when 2 then
                if p_customer = 0 then
                    select co_ad_id into strict place from company where co_id = p_company;
                else
                    select c_ad_id into strict place from customer where c_id = p_customer;
                end if;
                update address set ad_line2 = case when ad_line2 = 'door 10' then 'door 22' else 'door 10' end
                where ad_id = place;
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
                select cx_tx_id, coalesce(min(tx_id), 'C001') into strict old_one, new_one
                from customer_taxrate left join taxrate on tx_id > cx_tx_id and tx_id like 'C%'
                where cx_c_id = p_customer and cx_tx_id like 'C%' group by cx_tx_id;
                update customer_taxrate set cx_tx_id = new_one where cx_c_id = p_customer and cx_tx_id = old_one;
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
                select wl_id, min(wi_s_symb) into strict place, old_one
                from watch_list join watch_item on wi_wl_id = wl_id where wl_c_id = p_customer group by wl_id;
                select min(s_symb) into new_one from security
                where s_symb > old_one and s_symb not in (select wi_s_symb from watch_item where wi_wl_id = place) ;
                update watch_item set wi_s_symb = new_one where wi_wl_id = place and wi_s_symb = old_one;
        end case;
        return p_table;
    end
$$;
