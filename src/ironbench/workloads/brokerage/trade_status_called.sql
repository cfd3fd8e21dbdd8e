-- The newest trades of an account; runs in the server.
begin;
select brokerage_trade_status(:ca_id);
commit;
