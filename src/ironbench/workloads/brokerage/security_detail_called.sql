-- All data about a security; runs in the server.
begin;
select brokerage_security_detail(:symbol, :start_day, :days, :lob);
commit;
