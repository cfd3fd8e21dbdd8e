-- The market has executed an order, which is now a trade; runs in the server.
begin;
select brokerage_trade_result(:trade_id, :price, :now_time);
commit;
\set done 1
