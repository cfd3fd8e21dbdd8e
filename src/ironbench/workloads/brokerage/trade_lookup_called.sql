-- Past trades; runs in the server.
begin;
select brokerage_trade_lookup(:frame, :trades, :ca_id, :symbol, :from_time, :to_time, :max_ca_id, :most);
commit;
