-- The indexes are the same as on PostgreSQL, except the primary keys: tables are stored in primary key order, so their
-- keys already exist.
create index trade_account on trade (t_ca_id, t_dts);
create index trade_symbol on trade (t_s_symb, t_dts);
create index trade_status on trade (t_st_id);
create index holding_history_trade on holding_history (hh_t_id);
create index daily_market_symbol on daily_market (dm_s_symb);
create index holding_position on holding (h_ca_id, h_s_symb);
create index customer_tax_id on customer (c_tax_id);
create index customer_account_customer on customer_account (ca_c_id);
create index company_name on company (co_name);
create index security_company on security (s_co_id, s_issue);
create index watch_list_customer on watch_list (wl_c_id);
create index trade_request_symbol on trade_request (tr_s_symb);
