-- Changes texts of past trades; runs in the server.
begin;
select brokerage_trade_update(:frame, :trades, :ca_id, :symbol, :from_time, :to_time, :max_ca_id, :most,
    :most_updates);
commit;
