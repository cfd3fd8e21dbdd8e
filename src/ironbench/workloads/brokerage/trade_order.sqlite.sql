-- The same transaction in SQLite's dialect. Amounts of money are whole hundredths. A variable is text unless it is
-- cast.
begin immediate;
select ca_b_id, ca_c_id, ca_tax_st, ca_bal from customer_account where ca_id = :ca_id \gset
select c_tier, concat(c_f_name, ' ', c_l_name) as exec_name from customer where c_id = :ca_c_id \gset
select b_name from broker where b_id = :ca_b_id;
\set placed 1
\if :is_owner = 0
select count(*) as placed, max(concat(ap_f_name, ' ', ap_l_name)) as exec_name
from account_permission
where ap_ca_id = :ca_id and ap_tax_id = :exec_tax_id and ap_f_name = :exec_first and ap_l_name = :exec_last \gset
\endif
\if :placed = 1
\if :by_name
select s_symb, s_ex_id, s_name
from company join security on s_co_id = co_id where co_name = :co_name and s_issue = :issue \gset
\else
select s_symb, s_ex_id, s_name, co_name as company
from security join company on co_id = s_co_id where s_symb = :symbol \gset
\endif
select tt_is_mrkt, 2 * tt_is_sell - 1 as meets, case when tt_is_mrkt = 1 then 'SBMT' else 'PNDG' end as status,
    case when tt_is_mrkt = 1 then lt_price else cast(:limit_price as integer) end as bid
from trade_type cross join last_trade where tt_id = :trade_type and lt_s_symb = :s_symb \gset
select hs_qty from holding_summary where hs_ca_id = :ca_id and hs_s_symb = :s_symb;
-- A sale is matched with earlier purchases, and a purchase with earlier short sales, starting with the newest or the
-- oldest.
select coalesce(sum(min(abs(h_qty), :quantity - met) * (:bid - h_price) * :meets), 0) as gain
from (
    select h_qty, h_price, case when cast(:lifo as integer) = 1 then total - running else running - abs(h_qty) end as met
    from (
        select h_qty, h_price, sum(abs(h_qty)) over (order by h_dts, h_t_id) as running,
            sum(abs(h_qty)) over () as total
        from holding where h_ca_id = :ca_id and h_s_symb = :s_symb and h_qty * :meets > 0
    ) held
) walk
where met < cast(:quantity as integer) \gset
\if :gain > 0 and :ca_tax_st > 0
select (sum(tx_rate) * :gain + 50) / 100 as tax
from customer_taxrate join taxrate on tx_id = cx_tx_id where cx_c_id = :ca_c_id;
\endif
select ch_chrg, (cr_rate * :quantity * :bid + 5000) / 10000 as comm
from charge join commission_rate on cr_c_tier = ch_c_tier and cr_tt_id = ch_tt_id
where ch_tt_id = :trade_type and ch_c_tier = :c_tier and cr_ex_id = :s_ex_id
    and cr_from_qty <= :quantity and cr_to_qty >= :quantity \gset
\if :margin
select :ca_bal + coalesce(sum(hs_qty * lt_price), 0) as assets
from holding_summary join last_trade on lt_s_symb = hs_s_symb where hs_ca_id = :ca_id;
\endif
\set is_cash 1 - :margin
insert into trade (t_id, t_dts, t_st_id, t_tt_id, t_is_cash, t_s_symb, t_qty, t_bid_price, t_ca_id, t_exec_name,
    t_trade_price, t_chrg, t_comm, t_tax, t_lifo)
values (:trade_id, :now_time, :status, :trade_type, :is_cash, :s_symb, :quantity, :bid, :ca_id, :exec_name,
    null, :ch_chrg, :comm, 0, :lifo);
insert into trade_history (th_t_id, th_st_id, th_dts) values (:trade_id, :status, :now_time);
\if :tt_is_mrkt = 0
insert into trade_request (tr_t_id, tr_tt_id, tr_s_symb, tr_qty, tr_bid_price, tr_b_id)
values (:trade_id, :trade_type, :s_symb, :quantity, :bid, :ca_b_id);
\endif
\endif
\if :placed = 0 or :roll_back = 1
\set placed 0
rollback;
\else
commit;
\endif
