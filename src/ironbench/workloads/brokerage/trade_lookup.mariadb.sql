-- Past trades with their settlements, cash transactions and histories, selected by number, by account or by security,
-- or the holdings that result from one trade.
begin;
\if :frame = 4
select coalesce(min(t_id), 0) as looked from (
    select t_id from trade where t_ca_id = :ca_id and t_dts >= :from_time order by t_dts limit 1) earliest \gset
select hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty
from holding_history
where hh_h_t_id in (select hh_h_t_id from holding_history where hh_t_id = :looked)
limit 20;
\else
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
select t_id, t_ca_id, t_dts, t_bid_price, t_exec_name, t_is_cash, t_qty, t_trade_price, tt_id, tt_name, tt_is_mrkt
from trade join trade_type on tt_id = t_tt_id where t_id in (select id from json_table(:trades, '$[*]' columns (id bigint path '$')) listed);
select se_t_id, se_amt, se_cash_due_date, se_cash_type from settlement where se_t_id in (select id from json_table(:trades, '$[*]' columns (id bigint path '$')) listed);
select ct_t_id, ct_amt, ct_dts, ct_name from cash_transaction where ct_t_id in (select id from json_table(:trades, '$[*]' columns (id bigint path '$')) listed);
select th_t_id, th_dts, th_st_id from trade_history where th_t_id in (select id from json_table(:trades, '$[*]' columns (id bigint path '$')) listed) order by th_t_id, th_dts;
\endif
commit;
