-- Changes texts of past trades, or changes them back: the name of the person who ordered the trade, the type of the
-- settlement, or the name of the cash transaction. The update uses a join, because with `in (select …)` MariaDB would
-- read and lock every row.
begin;
\set most_trades :most
\if :frame = 2
select coalesce(json_arrayagg(t_id), '[]') as trades from (
    select t_id from trade where t_ca_id = :ca_id and t_dts between :from_time and :to_time
    order by t_dts limit :most_trades) earliest \gset
\elif :frame = 3
select coalesce(json_arrayagg(t_id), '[]') as trades from (
    select t_id from trade
    where t_s_symb = :symbol and t_dts between :from_time and :to_time and t_ca_id <= :max_ca_id
    order by t_dts limit :most_trades) earliest \gset
\endif
\set most_changed :most_updates
\if :frame = 1
update (select id from json_table(:trades, '$[*]' columns (id bigint path '$')) listed limit :most_changed) first_ones
straight_join trade on t_id = id
set t_exec_name = case
    when t_exec_name like '% X %' then replace(t_exec_name, ' X ', ' ') else replace(t_exec_name, ' ', ' X ') end;
\elif :frame = 2
update (select id from json_table(:trades, '$[*]' columns (id bigint path '$')) listed limit :most_changed) first_ones
straight_join settlement on se_t_id = id
set se_cash_type = case
    when se_cash_type like '% account' then replace(se_cash_type, ' account', '') else concat(se_cash_type, ' account') end;
\else
update (select id from json_table(:trades, '$[*]' columns (id bigint path '$')) listed limit :most_changed) first_ones
straight_join cash_transaction on ct_t_id = id
set ct_name = case
    when ct_name like '% shares of %' then replace(ct_name, ' shares of ', ' units of ')
    else replace(ct_name, ' units of ', ' shares of ') end;
\endif
select t_id, t_ca_id, t_dts, t_bid_price, t_exec_name, t_is_cash, t_qty, t_trade_price, tt_id, tt_name, tt_is_mrkt, s_name
from trade join trade_type on tt_id = t_tt_id join security on s_symb = t_s_symb where t_id in (select id from json_table(:trades, '$[*]' columns (id bigint path '$')) listed);
select se_t_id, se_amt, se_cash_due_date, se_cash_type from settlement where se_t_id in (select id from json_table(:trades, '$[*]' columns (id bigint path '$')) listed);
select ct_t_id, ct_amt, ct_dts, ct_name from cash_transaction where ct_t_id in (select id from json_table(:trades, '$[*]' columns (id bigint path '$')) listed);
select th_t_id, th_dts, th_st_id from trade_history where th_t_id in (select id from json_table(:trades, '$[*]' columns (id bigint path '$')) listed) order by th_t_id, th_dts;
commit;
