-- A customer's accounts and their values. Half of the transactions also read the latest trades of one of these
-- accounts.
begin;
\set asked :c_id
\if :asked = 0
select c_id as asked from customer where c_tax_id = :tax_id \gset
\endif
select c_st_id, c_l_name, c_f_name, c_m_name, c_gndr, c_tier, c_dob, c_ad_id, c_ctry_1, c_area_1, c_local_1, c_ext_1,
    c_ctry_2, c_area_2, c_local_2, c_ext_2, c_ctry_3, c_area_3, c_local_3, c_ext_3, c_email_1, c_email_2
from customer where c_id = :asked;
select ca_id, ca_bal, coalesce(sum(hs_qty * lt_price), 0) as assets
from customer_account
left join holding_summary on hs_ca_id = ca_id
left join last_trade on lt_s_symb = hs_s_symb
where ca_c_id = :asked
group by ca_id, ca_bal
order by assets limit 10;
\if :history
\set skipped :account
select ca_id as chosen from customer_account where ca_c_id = :asked order by ca_id limit 1 offset :skipped \gset
select t_id, t_s_symb, t_qty, st_name, th_dts
from (select t_id, t_s_symb, t_qty from trade where t_ca_id = :chosen order by t_dts desc limit 10) newest
join trade_history on th_t_id = t_id
join status_type on st_id = th_st_id
order by th_dts desc limit 30;
\endif
commit;
