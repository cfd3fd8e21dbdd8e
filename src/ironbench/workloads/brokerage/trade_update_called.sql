-- Wording of past trades is changed, in the server.
begin;
select brokerage_trade_update(:frame, :trades, :ca_id, :symbol, :from_time, :to_time, :max_ca_id, :most,
    :most_updates);
commit;
