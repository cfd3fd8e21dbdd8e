-- All that is known of a security, in the server.
begin;
select brokerage_security_detail(:symbol, :start_day, :days, :lob);
commit;
