-- Total value of the pending limit orders of some brokers; runs in the server.
begin;
select brokerage_broker_volume(:brokers, :sector);
commit;
