-- The newest trades of an account, in the server.
begin;
select brokerage_trade_status(:ca_id);
commit;
