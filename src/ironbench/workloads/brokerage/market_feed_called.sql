-- The ticker; runs in the server.
begin;
select brokerage_market_feed(:ticker, :now_time) as triggered \gset
commit;
