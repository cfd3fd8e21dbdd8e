-- Makes a small change to data that other transactions only read. Most changes are undone by a later change, so that
-- the data stay the same in the long run. Changes of news, exchange dates and watch lists (9, 10 and 12) are not
-- undone.
begin;
\if :table_no = 1
update account_permission set ap_acl = case when ap_acl = '1111' then '0011' else '1111' end where ap_ca_id = :ca_id;
\elif :table_no = 2
\if :c_id = 0
select co_ad_id as address from company where co_id = :co_id \gset
\else
select c_ad_id as address from customer where c_id = :c_id \gset
\endif
update address set ad_line2 = case when ad_line2 = 'door 10' then 'door 22' else 'door 10' end where ad_id = :address;
\elif :table_no = 3
update company set co_sp_rate = case when co_sp_rate = 'ABA' then 'AAA' else 'ABA' end where co_id = :co_id;
\elif :table_no = 4
update customer set c_email_2 = case when c_email_2 like '%@work.example'
    then replace(c_email_2, '@work.example', '@post.example') else replace(c_email_2, '@post.example', '@work.example') end
where c_id = :c_id;
\elif :table_no = 5
-- Switches to the tax rate of the next country. The first country follows the last.
select cx_tx_id as old_rate, coalesce(min(tx_id), 'C001') as new_rate
from customer_taxrate left join taxrate on tx_id > cx_tx_id and tx_id like 'C%'
where cx_c_id = :c_id and cx_tx_id like 'C%' group by cx_tx_id \gset
update customer_taxrate set cx_tx_id = :new_rate where cx_c_id = :c_id and cx_tx_id = :old_rate;
\elif :table_no = 6
update daily_market set dm_vol = dm_vol + :volume where dm_s_symb = :symbol and extract(day from dm_date) = :day;
\elif :table_no = 7
update exchange set ex_desc = case when ex_desc like '%, as of today'
    then replace(ex_desc, ', as of today', '') else concat(ex_desc, ', as of today') end;
\elif :table_no = 8
update financial set fi_qtr_start_date = case
    when extract(day from fi_qtr_start_date) = 1 then fi_qtr_start_date + interval '1' day
    else fi_qtr_start_date - interval '1' day end
where fi_co_id = :co_id;
\elif :table_no = 9
update news_item set ni_dts = ni_dts + interval '1' day
where ni_id in (select nx_ni_id from news_xref where nx_co_id = :co_id);
\elif :table_no = 10
update security set s_exch_date = s_exch_date + interval '1' day where s_symb = :symbol;
\elif :table_no = 11
update taxrate set tx_name = case when tx_name like '% percent'
    then replace(tx_name, ' percent', ' per cent') else replace(tx_name, ' per cent', ' percent') end
where tx_id in (select cx_tx_id from customer_taxrate where cx_c_id = :c_id);
\else
-- Replaces the first security of a watch list with the next security that is not on the list.
select wl_id, min(wi_s_symb) as old_symbol
from watch_list join watch_item on wi_wl_id = wl_id where wl_c_id = :c_id group by wl_id \gset
select min(s_symb) as new_symbol from security
where s_symb > :old_symbol and s_symb not in (select wi_s_symb from watch_item where wi_wl_id = :wl_id) \gset
update watch_item set wi_s_symb = :new_symbol where wi_wl_id = :wl_id and wi_s_symb = :old_symbol;
\endif
commit;
