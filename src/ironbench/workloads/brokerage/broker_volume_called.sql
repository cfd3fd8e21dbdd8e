-- What waiting orders of some brokers are worth, in the server.
begin;
select brokerage_broker_volume(:brokers, :sector);
commit;
