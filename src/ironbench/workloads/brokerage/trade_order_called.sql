-- Places an order; runs in the server.
begin;
select brokerage_trade_order(:trade_id, :now_time, :ca_id, :is_owner, :exec_tax_id, :exec_first, :exec_last, :by_name,
    :symbol, :co_name, :issue, :trade_type, :quantity, :limit_price, :margin, :lifo) as placed \gset
\if :placed = 0 or :roll_back = 1
\set placed 0
rollback;
\else
commit;
\endif
