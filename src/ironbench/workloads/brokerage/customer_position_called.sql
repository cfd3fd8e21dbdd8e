-- A customer's accounts and their values; runs in the server.
begin;
select brokerage_customer_position(:c_id, :tax_id, :history, :account);
commit;
