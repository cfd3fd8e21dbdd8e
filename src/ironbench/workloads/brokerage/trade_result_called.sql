-- An order has become a trade, in the server.
begin;
select brokerage_trade_result(:trade_id, :price, :now_time);
commit;
\set done 1
