-- A customer's accounts and what they are worth, in the server.
begin;
select brokerage_customer_position(:c_id, :tax_id, :history, :account);
commit;
