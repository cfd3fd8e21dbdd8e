-- The market has executed an order, which is now a trade. Changes the holdings of the account, computes the costs, and
-- pays the parties. The iteration over the holdings is repeated in three statements, because MariaDB does not support
-- data-modifying statements inside `with`. The account is locked first, so that two trades of one account run one after
-- the other. Without this lock, both could read the account and then wait for each other.
begin;
select t_ca_id, t_tt_id, t_s_symb, t_qty, t_is_cash, t_lifo, case when tt_is_sell = 1 then -t_qty else t_qty end as signed
from trade join trade_type on tt_id = t_tt_id where t_id = :trade_id \gset
select ca_b_id, ca_c_id, ca_tax_st from customer_account where ca_id = :t_ca_id for update \gset
select coalesce(sum(hs_qty), 0) as hs_qty, count(*) as summaries
from holding_summary where hs_ca_id = :t_ca_id and hs_s_symb = :t_s_symb \gset
\set left :hs_qty + :signed
\if :summaries = 0
insert into holding_summary (hs_ca_id, hs_s_symb, hs_qty) values (:t_ca_id, :t_s_symb, :left);
\elif :left <> 0
update holding_summary set hs_qty = :left where hs_ca_id = :t_ca_id and hs_s_symb = :t_s_symb;
\endif
\set moved 0
\set gain 0
\if :hs_qty * :signed < 0
\set size abs(:signed)
insert into holding_history (hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty)
select h_t_id, :trade_id, h_qty, after_qty
from (
    select h_t_id, h_price, h_qty, h_qty + sign(:signed) * least(abs(h_qty), :size - before_qty) as after_qty
    from (
        select h_t_id, h_price, h_qty,
            case when :t_lifo = 1 then total - running else running - abs(h_qty) end as before_qty
        from (
            select h_t_id, h_price, h_qty, sum(abs(h_qty)) over (order by h_dts, h_t_id) as running,
                sum(abs(h_qty)) over () as total
            from holding where h_ca_id = :t_ca_id and h_s_symb = :t_s_symb
        ) held
    ) walk
    where before_qty < :size
) met;
select coalesce(sum(after_qty - h_qty), 0) as moved, coalesce(sum((h_qty - after_qty) * (cast(:price as decimal(8,2)) - h_price)), 0) as gain
from (
    select h_t_id, h_price, h_qty, h_qty + sign(:signed) * least(abs(h_qty), :size - before_qty) as after_qty
    from (
        select h_t_id, h_price, h_qty,
            case when :t_lifo = 1 then total - running else running - abs(h_qty) end as before_qty
        from (
            select h_t_id, h_price, h_qty, sum(abs(h_qty)) over (order by h_dts, h_t_id) as running,
                sum(abs(h_qty)) over () as total
            from holding where h_ca_id = :t_ca_id and h_s_symb = :t_s_symb
        ) held
    ) walk
    where before_qty < :size
) met \gset
update holding join (
    select h_t_id, h_price, h_qty, h_qty + sign(:signed) * least(abs(h_qty), :size - before_qty) as after_qty
    from (
        select h_t_id, h_price, h_qty,
            case when :t_lifo = 1 then total - running else running - abs(h_qty) end as before_qty
        from (
            select h_t_id, h_price, h_qty, sum(abs(h_qty)) over (order by h_dts, h_t_id) as running,
                sum(abs(h_qty)) over () as total
            from holding where h_ca_id = :t_ca_id and h_s_symb = :t_s_symb
        ) held
    ) walk
    where before_qty < :size
) met on met.h_t_id = holding.h_t_id
set holding.h_qty = after_qty;
delete from holding where h_ca_id = :t_ca_id and h_s_symb = :t_s_symb and h_qty = 0;
\endif
\set rest :signed - :moved
\if :rest <> 0
insert into holding (h_t_id, h_ca_id, h_s_symb, h_dts, h_price, h_qty)
values (:trade_id, :t_ca_id, :t_s_symb, :now_time, :price, :rest);
insert into holding_history (hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty) values (:trade_id, :trade_id, 0, :rest);
\endif
\if :left = 0
delete from holding_summary where hs_ca_id = :t_ca_id and hs_s_symb = :t_s_symb;
\endif
\set tax 0
\if :gain > 0 and :ca_tax_st > 0
select round(sum(tx_rate) * cast(:gain as decimal(12,2)), 2) as tax
from customer_taxrate join taxrate on tx_id = cx_tx_id where cx_c_id = :ca_c_id \gset
\endif
select s_name, round(cr_rate * :t_qty * cast(:price as decimal(8,2)) / 100, 2) as comm
from security
join customer on c_id = :ca_c_id
join commission_rate on cr_c_tier = c_tier and cr_tt_id = :t_tt_id and cr_ex_id = s_ex_id
where s_symb = :t_s_symb and cr_from_qty <= :t_qty and cr_to_qty >= :t_qty \gset
update trade set t_comm = :comm, t_dts = :now_time, t_st_id = 'CMPT', t_trade_price = :price, t_tax = :tax
where t_id = :trade_id;
insert into trade_history (th_t_id, th_st_id, th_dts) values (:trade_id, 'CMPT', :now_time);
update broker set b_comm_total = b_comm_total + cast(:comm as decimal(10,2)), b_num_trades = b_num_trades + 1 where b_id = :ca_b_id;
insert into settlement (se_t_id, se_cash_type, se_cash_due_date, se_amt)
select t_id, case when t_is_cash = 1 then 'cash' else 'margin' end, cast(t_dts as date) + interval '2' day,
    t_trade_price * case when t_tt_id in ('TMS', 'TLS', 'TSL') then t_qty else -t_qty end - t_chrg - t_comm - case when :ca_tax_st = 1 then t_tax else 0 end
from trade where t_id = :trade_id
returning se_amt \gset
\if :t_is_cash
update customer_account set ca_bal = ca_bal + cast(:se_amt as decimal(10,2)) where ca_id = :t_ca_id;
insert into cash_transaction (ct_t_id, ct_dts, ct_amt, ct_name)
select t_id, t_dts, cast(:se_amt as decimal(10,2)), concat(tt_name, ': ', t_qty, ' shares of ', t_s_symb)
from trade join trade_type on tt_id = t_tt_id where t_id = :trade_id;
\endif
select ca_bal from customer_account where ca_id = :t_ca_id;
commit;
\set done 1
