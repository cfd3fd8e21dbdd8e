-- The customers' read-only transactions as functions for logic=server. Each function returns one JSON text. It contains
-- the rows that the script with the same name reads, in the same order.
create or replace function brokerage_trade_status(p_account bigint) returns json
language plpgsql stable as $$
    begin
        return json_build_object(
            'trades', (
                select json_agg(asked) from (
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
                select row_to_json(asked) from (
                    select c_l_name, c_f_name, b_name
                    from customer_account
                    join customer on c_id = ca_c_id
                    join broker on b_id = ca_b_id
                    where ca_id = p_account
                ) asked
            )
        ) ;
    end
$$;
create or replace function brokerage_market_watch(
    p_mode integer, p_customer bigint, p_account bigint, p_industry text, p_first bigint, p_last bigint, p_day date
) returns numeric
language plpgsql stable as $$
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
        elsif p_mode = 2 then
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
    end
$$;
create or replace function brokerage_security_detail(p_symbol text, p_day date, p_days integer, p_lob integer)
returns json
language plpgsql stable as $$
    declare
        detailed record;
    begin
        select s_name, s_num_out, s_start_date, s_exch_date, s_pe, s_52wk_high, s_52wk_high_date, s_52wk_low,
            s_52wk_low_date, s_dividend, s_yield, co_id, co_name, co_sp_rate, co_ceo, co_desc, co_open_date, co_st_id,
            ca.ad_line1, ca.ad_line2, zca.zc_town, zca.zc_div, ca.ad_zc_code, ca.ad_ctry,
            ex_name, ex_num_symb, ex_open, ex_close, ex_desc,
            ea.ad_line1 as ex_line1, ea.ad_line2 as ex_line2, zea.zc_town as ex_town, zea.zc_div as ex_div,
            ea.ad_ctry as ex_ctry
        into strict detailed
        from security
        join company on co_id = s_co_id
        join address ca on ca.ad_id = co_ad_id
        join zip_code zca on zca.zc_code = ca.ad_zc_code
        join exchange on ex_id = s_ex_id
        join address ea on ea.ad_id = ex_ad_id
        join zip_code zea on zea.zc_code = ea.ad_zc_code
        where s_symb = p_symbol;
        return json_build_object(
            'security', row_to_json(detailed),
            'competitors', (
                select json_agg(asked) from (
                    select co_name, in_name
                    from company_competitor
                    join company on co_id = cp_comp_co_id
                    join industry on in_id = cp_in_id
                    where cp_co_id = detailed.co_id order by cp_comp_co_id limit 3
                ) asked
            ),
            'financials', (
                select json_agg(asked) from (
                    select fi_year, fi_qtr, fi_qtr_start_date, fi_revenue, fi_net_earn, fi_basic_eps, fi_dilut_eps,
                        fi_margin, fi_inventory, fi_assets, fi_liability, fi_out_basic, fi_out_dilut
                    from financial where fi_co_id = detailed.co_id order by fi_year, fi_qtr limit 20
                ) asked
            ),
            'days', (
                select json_agg(asked) from (
                    select dm_date, dm_close, dm_high, dm_low, dm_vol
                    from daily_market where dm_s_symb = p_symbol and dm_date >= p_day order by dm_date limit p_days
                ) asked
            ),
            'last_trade', (
                select row_to_json(asked) from (
                    select lt_price, lt_open_price, lt_vol from last_trade where lt_s_symb = p_symbol
                ) asked
            ),
            'news', case when p_lob = 1 then (
                select json_agg(asked) from (
                    select ni_item, ni_dts, ni_source, ni_author
                    from news_xref join news_item on ni_id = nx_ni_id
                    where nx_co_id = detailed.co_id order by ni_id limit 2
                ) asked
            ) else (
                select json_agg(asked) from (
                    select ni_headline, ni_summary, ni_dts, ni_source, ni_author
                    from news_xref join news_item on ni_id = nx_ni_id
                    where nx_co_id = detailed.co_id order by ni_id limit 2
                ) asked
            ) end
        ) ;
    end
$$;
create or replace function brokerage_customer_position(
    p_customer bigint, p_tax_id text, p_history integer, p_account integer
) returns json
language plpgsql stable as $$
    declare
        asking bigint := p_customer;
        chosen bigint;
    begin
        if p_customer = 0 then
            select c_id into strict asking from customer where c_tax_id = p_tax_id;
        end if;
        if p_history = 1 then
            select ca_id into strict chosen from customer_account
            where ca_c_id = asking order by ca_id limit 1 offset p_account;
        end if;
        return json_build_object(
            'customer', (
                select row_to_json(asked) from (
                    select c_st_id, c_l_name, c_f_name, c_m_name, c_gndr, c_tier, c_dob, c_ad_id, c_ctry_1, c_area_1,
                        c_local_1, c_ext_1, c_ctry_2, c_area_2, c_local_2, c_ext_2, c_ctry_3, c_area_3, c_local_3,
                        c_ext_3, c_email_1, c_email_2
                    from customer where c_id = asking
                ) asked
            ),
            'accounts', (
                select json_agg(asked) from (
                    select ca_id, ca_bal, coalesce(sum(hs_qty * lt_price), 0) as assets
                    from customer_account
                    left join holding_summary on hs_ca_id = ca_id
                    left join last_trade on lt_s_symb = hs_s_symb
                    where ca_c_id = asking
                    group by ca_id, ca_bal
                    order by assets limit 10
                ) asked
            ),
            'trades', case when p_history = 1 then (
                select json_agg(asked) from (
                    select t_id, t_s_symb, t_qty, st_name, th_dts
                    from (
                        select t_id, t_s_symb, t_qty from trade where t_ca_id = chosen order by t_dts desc limit 10
                    ) newest
                    join trade_history on th_t_id = t_id
                    join status_type on st_id = th_st_id
                    order by th_dts desc limit 30
                ) asked
            ) end
        ) ;
    end
$$;
create or replace function brokerage_broker_volume(p_brokers json, p_sector text) returns json
language plpgsql stable as $$
    begin
        return (
            select json_agg(asked) from (
                select b_name, sum(tr_qty * tr_bid_price) as volume
                from sector
                join industry on in_sc_id = sc_id
                join company on co_in_id = in_id
                join security on s_co_id = co_id
                join trade_request on tr_s_symb = s_symb
                join broker on b_id = tr_b_id
                where sc_name = p_sector and b_name in (select json_array_elements_text(p_brokers))
                group by b_name
                order by volume desc
            ) asked
        ) ;
    end
$$;
create or replace function brokerage_past_trades(
    p_frame integer, p_trades json, p_account bigint, p_symbol text, p_from timestamp, p_to timestamp, p_most_account bigint,
    p_most integer
) returns bigint[]
language plpgsql stable as $$
    -- Returns the numbers of the trades that a Trade-Lookup or Trade-Update reads.
    begin
        if p_frame = 1 then
            return array(select json_array_elements_text(p_trades)::bigint) ;
        elsif p_frame = 2 then
            return array(
                select t_id from trade where t_ca_id = p_account and t_dts between p_from and p_to
                order by t_dts limit p_most
            ) ;
        end if;
        return array(
            select t_id from trade
            where t_s_symb = p_symbol and t_dts between p_from and p_to and t_ca_id <= p_most_account
            order by t_dts limit p_most
        ) ;
    end
$$;
create or replace function brokerage_trades(p_numbers bigint[], p_named boolean) returns json
language plpgsql as $$
    -- Returns trades with their settlements, cash transactions and history. The function is volatile, because Trade-Update
    -- must see the rows that it has changed.
    begin
        return json_build_object(
            'trades', (
                select json_agg(asked) from (
                    select t_id, t_ca_id, t_dts, t_bid_price, t_exec_name, t_is_cash, t_qty, t_trade_price, tt_id,
                        tt_name, tt_is_mrkt,
                        case when p_named then (select s_name from security where s_symb = t_s_symb) end as s_name
                    from trade join trade_type on tt_id = t_tt_id where t_id = any(p_numbers)
                ) asked
            ),
            'settlements', (
                select json_agg(asked) from (
                    select se_t_id, se_amt, se_cash_due_date, se_cash_type
                    from settlement where se_t_id = any(p_numbers)
                ) asked
            ),
            'cash', (
                select json_agg(asked) from (
                    select ct_t_id, ct_amt, ct_dts, ct_name from cash_transaction where ct_t_id = any(p_numbers)
                ) asked
            ),
            'history', (
                select json_agg(asked) from (
                    select th_t_id, th_dts, th_st_id
                    from trade_history where th_t_id = any(p_numbers) order by th_t_id, th_dts
                ) asked
            )
        ) ;
    end
$$;
create or replace function brokerage_trade_lookup(
    p_frame integer, p_trades json, p_account bigint, p_symbol text, p_from timestamp, p_to timestamp, p_most_account bigint,
    p_most integer
) returns json
language plpgsql stable as $$
    declare
        looked bigint;
    begin
        if p_frame < 4 then
            return brokerage_trades(
                brokerage_past_trades(p_frame, p_trades, p_account, p_symbol, p_from, p_to, p_most_account, p_most), false
            ) ;
        end if;
        select t_id into looked from trade where t_ca_id = p_account and t_dts >= p_from order by t_dts limit 1;
        return (
            select json_agg(asked) from (
                select hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty
                from holding_history
                where hh_h_t_id in (select hh_h_t_id from holding_history where hh_t_id = looked)
                limit 20
            ) asked
        ) ;
    end
$$;
