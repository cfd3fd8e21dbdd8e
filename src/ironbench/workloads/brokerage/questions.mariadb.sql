-- The customers' read-only transactions as functions for logic=server. Each function returns one JSON text. It contains
-- the rows that the script with the same name reads, in the same order.
create or replace function brokerage_trade_status(p_account bigint) returns longtext reads sql data
begin
    return json_object(
        'trades', (
            select json_arrayagg(
                json_array(t_id, t_dts, st_name, tt_name, t_s_symb, t_qty, t_exec_name, t_chrg, s_name, ex_name)
            )
            from (
                select t_id, t_dts, st_name, tt_name, t_s_symb, t_qty, t_exec_name, t_chrg, s_name, ex_name
                from trade
                join status_type on st_id = t_st_id
                join trade_type on tt_id = t_tt_id
                join security on s_symb = t_s_symb
                join exchange on ex_id = s_ex_id
                where t_ca_id = p_account
                order by t_dts desc limit 50
            ) asked
        ),
        'owner', (
            select json_array(c_l_name, c_f_name, b_name)
            from customer_account
            join customer on c_id = ca_c_id
            join broker on b_id = ca_b_id
            where ca_id = p_account
        )
    ) ;
end;
create or replace function brokerage_market_watch(
    p_mode int, p_customer bigint, p_account bigint, p_industry varchar(50), p_first bigint, p_last bigint, p_day date
) returns decimal(30,10) reads sql data
begin
    if p_mode = 1 then
        return (
            select 100.0 * sum(s_num_out * lt_price) / sum(s_num_out * dm_close) - 100
            from watch_list
            join watch_item on wi_wl_id = wl_id
            join security on s_symb = wi_s_symb
            join last_trade on lt_s_symb = s_symb
            join daily_market on dm_s_symb = s_symb and dm_date = p_day
            where wl_c_id = p_customer
        ) ;
    elseif p_mode = 2 then
        return (
            select 100.0 * sum(s_num_out * lt_price) / sum(s_num_out * dm_close) - 100
            from holding_summary
            join security on s_symb = hs_s_symb
            join last_trade on lt_s_symb = s_symb
            join daily_market on dm_s_symb = s_symb and dm_date = p_day
            where hs_ca_id = p_account
        ) ;
    end if;
    return (
        select 100.0 * sum(s_num_out * lt_price) / sum(s_num_out * dm_close) - 100
        from industry
        join company on co_in_id = in_id
        join security on s_co_id = co_id
        join last_trade on lt_s_symb = s_symb
        join daily_market on dm_s_symb = s_symb and dm_date = p_day
        where in_name = p_industry and co_id between p_first and p_last
    ) ;
end;
create or replace function brokerage_security_detail(p_symbol varchar(15), p_day date, p_days int, p_lob int)
returns longtext reads sql data
begin
    declare v_company bigint;
    declare v_detailed longtext;
    select co_id, json_array(s_name, s_num_out, s_start_date, s_exch_date, s_pe, s_52wk_high, s_52wk_high_date, s_52wk_low,
        s_52wk_low_date, s_dividend, s_yield, co_id, co_name, co_sp_rate, co_ceo, co_desc, co_open_date, co_st_id,
        ca.ad_line1, ca.ad_line2, zca.zc_town, zca.zc_div, ca.ad_zc_code, ca.ad_ctry,
        ex_name, ex_num_symb, ex_open, ex_close, ex_desc,
        ea.ad_line1, ea.ad_line2, zea.zc_town, zea.zc_div, ea.ad_ctry)
    into v_company, v_detailed
    from security
    join company on co_id = s_co_id
    join address ca on ca.ad_id = co_ad_id
    join zip_code zca on zca.zc_code = ca.ad_zc_code
    join exchange on ex_id = s_ex_id
    join address ea on ea.ad_id = ex_ad_id
    join zip_code zea on zea.zc_code = ea.ad_zc_code
    where s_symb = p_symbol;
    return json_object(
        'security', v_detailed,
        'competitors', (
            select json_arrayagg(json_array(co_name, in_name)) from (
                select co_name, in_name
                from company_competitor
                join company on co_id = cp_comp_co_id
                join industry on in_id = cp_in_id
                where cp_co_id = v_company order by cp_comp_co_id limit 3
            ) asked
        ),
        'financials', (
            select json_arrayagg(
                json_array(fi_year, fi_qtr, fi_qtr_start_date, fi_revenue, fi_net_earn, fi_basic_eps, fi_dilut_eps, fi_margin,
                    fi_inventory, fi_assets, fi_liability, fi_out_basic, fi_out_dilut)
            )
            from (select * from financial where fi_co_id = v_company order by fi_year, fi_qtr limit 20) asked
        ),
        'days', (
            select json_arrayagg(json_array(dm_date, dm_close, dm_high, dm_low, dm_vol)) from (
                select dm_date, dm_close, dm_high, dm_low, dm_vol
                from daily_market where dm_s_symb = p_symbol and dm_date >= p_day order by dm_date limit p_days
            ) asked
        ),
        'last_trade', (
            select json_array(lt_price, lt_open_price, lt_vol) from last_trade where lt_s_symb = p_symbol
        ),
        'news', if(p_lob = 1, (
            select json_arrayagg(json_array(ni_item, ni_dts, ni_source, ni_author)) from (
                select ni_item, ni_dts, ni_source, ni_author
                from news_xref join news_item on ni_id = nx_ni_id where nx_co_id = v_company order by ni_id limit 2
            ) asked
        ), (
            select json_arrayagg(json_array(ni_headline, ni_summary, ni_dts, ni_source, ni_author)) from (
                select ni_headline, ni_summary, ni_dts, ni_source, ni_author
                from news_xref join news_item on ni_id = nx_ni_id where nx_co_id = v_company order by ni_id limit 2
            ) asked
        ))
    ) ;
end;
create or replace function brokerage_customer_position(
    p_customer bigint, p_tax_id varchar(20), p_history int, p_account int
) returns longtext reads sql data
begin
    declare v_asking bigint default p_customer;
    declare v_chosen bigint;
    declare v_trades longtext;
    if p_customer = 0 then
        select c_id into v_asking from customer where c_tax_id = p_tax_id;
    end if;
    if p_history = 1 then
        select ca_id into v_chosen from customer_account
        where ca_c_id = v_asking order by ca_id limit 1 offset p_account;
        select json_arrayagg(json_array(t_id, t_s_symb, t_qty, st_name, th_dts)) into v_trades from (
            select t_id, t_s_symb, t_qty, st_name, th_dts
            from (
                select t_id, t_s_symb, t_qty from trade where t_ca_id = v_chosen order by t_dts desc limit 10
            ) newest
            join trade_history on th_t_id = t_id
            join status_type on st_id = th_st_id
            order by th_dts desc limit 30
        ) asked;
    end if;
    return json_object(
        'customer', (
            select json_array(c_st_id, c_l_name, c_f_name, c_m_name, c_gndr, c_tier, c_dob, c_ad_id, c_ctry_1, c_area_1,
                c_local_1, c_ext_1, c_ctry_2, c_area_2, c_local_2, c_ext_2, c_ctry_3, c_area_3, c_local_3, c_ext_3,
                c_email_1, c_email_2)
            from customer where c_id = v_asking
        ),
        'accounts', (
            select json_arrayagg(json_array(ca_id, ca_bal, assets)) from (
                select ca_id, ca_bal, coalesce(sum(hs_qty * lt_price), 0) as assets
                from customer_account
                left join holding_summary on hs_ca_id = ca_id
                left join last_trade on lt_s_symb = hs_s_symb
                where ca_c_id = v_asking
                group by ca_id, ca_bal
                order by assets limit 10
            ) asked
        ),
        'trades', v_trades
    ) ;
end;
create or replace function brokerage_broker_volume(p_brokers text, p_sector varchar(30))
returns longtext reads sql data
begin
    return (
        select json_arrayagg(json_array(b_name, volume)) from (
            select b_name, sum(tr_qty * tr_bid_price) as volume
            from sector
            join industry on in_sc_id = sc_id
            join company on co_in_id = in_id
            join security on s_co_id = co_id
            join trade_request on tr_s_symb = s_symb
            join broker on b_id = tr_b_id
            where sc_name = p_sector
                and b_name in (select name from json_table(p_brokers, '$[*]' columns (name varchar(49) path '$')) named)
            group by b_name
            order by volume desc limit 40
        ) asked
    ) ;
end;
create or replace function brokerage_past_trades(
    p_frame int, p_trades text, p_account bigint, p_symbol varchar(15), p_from datetime(3), p_to datetime(3),
    p_most_account bigint, p_most int
) returns text reads sql data
begin
    -- Returns the numbers of the trades that a Trade-Lookup or Trade-Update reads.
    if p_frame = 1 then
        return p_trades;
    elseif p_frame = 2 then
        return (
            select coalesce(json_arrayagg(t_id), '[]') from (
                select t_id from trade where t_ca_id = p_account and t_dts between p_from and p_to
                order by t_dts limit p_most
            ) earliest
        ) ;
    end if;
    return (
        select coalesce(json_arrayagg(t_id), '[]') from (
            select t_id from trade
            where t_s_symb = p_symbol and t_dts between p_from and p_to and t_ca_id <= p_most_account
            order by t_dts limit p_most
        ) earliest
    ) ;
end;
create or replace function brokerage_trades(p_numbers text, p_named int) returns longtext reads sql data
begin
    -- Returns trades with their settlements, cash transactions and history.
    return json_object(
        'trades', (
            select json_arrayagg(
                json_array(t_id, t_ca_id, t_dts, t_bid_price, t_exec_name, t_is_cash, t_qty, t_trade_price, tt_id, tt_name,
                    tt_is_mrkt, if(p_named, (select s_name from security where s_symb = t_s_symb), null))
            )
            from trade join trade_type on tt_id = t_tt_id
            where t_id in (select id from json_table(p_numbers, '$[*]' columns (id bigint path '$')) listed)
        ),
        'settlements', (
            select json_arrayagg(json_array(se_t_id, se_amt, se_cash_due_date, se_cash_type)) from settlement
            where se_t_id in (select id from json_table(p_numbers, '$[*]' columns (id bigint path '$')) listed)
        ),
        'cash', (
            select json_arrayagg(json_array(ct_t_id, ct_amt, ct_dts, ct_name)) from cash_transaction
            where ct_t_id in (select id from json_table(p_numbers, '$[*]' columns (id bigint path '$')) listed)
        ),
        'history', (
            select json_arrayagg(json_array(th_t_id, th_dts, th_st_id) order by th_t_id, th_dts) from trade_history
            where th_t_id in (select id from json_table(p_numbers, '$[*]' columns (id bigint path '$')) listed)
        )
    ) ;
end;
create or replace function brokerage_trade_lookup(
    p_frame int, p_trades text, p_account bigint, p_symbol varchar(15), p_from datetime(3), p_to datetime(3),
    p_most_account bigint, p_most int
) returns longtext reads sql data
begin
    declare v_looked bigint;
    if p_frame < 4 then
        return brokerage_trades(
            brokerage_past_trades(p_frame, p_trades, p_account, p_symbol, p_from, p_to, p_most_account, p_most), 0
        ) ;
    end if;
    select t_id into v_looked from trade where t_ca_id = p_account and t_dts >= p_from order by t_dts limit 1;
    return (
        select json_arrayagg(json_array(hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty)) from (
            select hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty
            from holding_history
            where hh_h_t_id in (select hh_h_t_id from holding_history where hh_t_id = v_looked)
            limit 20
        ) asked
    ) ;
end;
