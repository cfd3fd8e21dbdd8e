-- How securities have moved since a day, in the server.
begin;
select brokerage_market_watch(:mode, :c_id, :ca_id, :industry, :co_first, :co_last, :start_day);
commit;
