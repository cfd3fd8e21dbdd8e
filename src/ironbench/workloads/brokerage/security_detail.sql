-- All data about a security: its company, exchange, competitors, financial figures, past prices and news.
begin;
select s_name, s_num_out, s_start_date, s_exch_date, s_pe, s_52wk_high, s_52wk_high_date, s_52wk_low, s_52wk_low_date,
    s_dividend, s_yield, co_id as detailed, co_name as company, co_sp_rate, co_ceo, co_desc, co_open_date, co_st_id,
    ca.ad_line1, ca.ad_line2, zca.zc_town, zca.zc_div, ca.ad_zc_code, ca.ad_ctry,
    ex_name, ex_num_symb, ex_open, ex_close, ex_desc,
    ea.ad_line1 as ex_line1, ea.ad_line2 as ex_line2, zea.zc_town as ex_town, zea.zc_div as ex_div, ea.ad_ctry as ex_ctry
from security
join company on co_id = s_co_id
join address ca on ca.ad_id = co_ad_id
join zip_code zca on zca.zc_code = ca.ad_zc_code
join exchange on ex_id = s_ex_id
join address ea on ea.ad_id = ex_ad_id
join zip_code zea on zea.zc_code = ea.ad_zc_code
where s_symb = :symbol \gset
select co_name, in_name
from company_competitor
join company on co_id = cp_comp_co_id
join industry on in_id = cp_in_id
where cp_co_id = :detailed order by cp_comp_co_id limit 3;
select fi_year, fi_qtr, fi_qtr_start_date, fi_revenue, fi_net_earn, fi_basic_eps, fi_dilut_eps, fi_margin, fi_inventory,
    fi_assets, fi_liability, fi_out_basic, fi_out_dilut
from financial where fi_co_id = :detailed order by fi_year, fi_qtr limit 20;
\set most_days :days
select dm_date, dm_close, dm_high, dm_low, dm_vol
from daily_market where dm_s_symb = :symbol and dm_date >= :start_day order by dm_date limit :most_days;
select lt_price, lt_open_price, lt_vol from last_trade where lt_s_symb = :symbol;
\if :lob
select ni_item, ni_dts, ni_source, ni_author
from news_xref join news_item on ni_id = nx_ni_id where nx_co_id = :detailed order by ni_id limit 2;
\else
select ni_headline, ni_summary, ni_dts, ni_source, ni_author
from news_xref join news_item on ni_id = nx_ni_id where nx_co_id = :detailed order by ni_id limit 2;
\endif
commit;
