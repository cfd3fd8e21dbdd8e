-- The change in value of securities since a given day; runs in the server.
begin;
select brokerage_market_watch(:mode, :c_id, :ca_id, :industry, :co_first, :co_last, :start_day);
commit;
