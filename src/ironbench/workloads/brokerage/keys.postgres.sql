-- The connections of the load create these indexes in parallel, starting with the index that takes longest. A
-- serializable transaction takes predicate locks on the index pages that it reads, and conflicts with transactions that
-- write to these pages (PostgreSQL 18 documentation, 13.2.3; src/backend/storage/lmgr/README-SSI). In a B-tree on the
-- trade number, new trades are adjacent, and a Trade-Result changes indexed columns of its trade, so any two concurrent
-- results would conflict. The hash index distributes adjacent trades over different pages, and the planner uses it to
-- look up a trade. A low fill factor distributes the accounts over more pages.
create index trade_account on trade (t_ca_id, t_dts);
create index trade_symbol on trade (t_s_symb, t_dts);
alter table trade add primary key (t_id);
create index trade_number on trade using hash (t_id);
alter table trade_history add primary key (th_t_id, th_st_id);
alter table holding_history add primary key (hh_h_t_id, hh_t_id);
alter table settlement add primary key (se_t_id);
alter table cash_transaction add primary key (ct_t_id);
alter table daily_market add primary key (dm_date, dm_s_symb);
alter table holding add primary key (h_t_id);
alter table watch_item add primary key (wi_wl_id, wi_s_symb);
alter table holding_summary add primary key (hs_ca_id, hs_s_symb) with (fillfactor = 40);
alter table news_item add primary key (ni_id);
create index trade_status on trade (t_st_id);
create index holding_history_trade on holding_history (hh_t_id);
create index daily_market_symbol on daily_market (dm_s_symb);
create index holding_position on holding (h_ca_id, h_s_symb) with (fillfactor = 40);
create index customer_tax_id on customer (c_tax_id);
create index customer_account_customer on customer_account (ca_c_id);
create index company_name on company (co_name);
create index security_company on security (s_co_id, s_issue);
create index watch_list_customer on watch_list (wl_c_id);
create index trade_request_symbol on trade_request (tr_s_symb);
alter table zip_code add primary key (zc_code);
alter table address add primary key (ad_id);
alter table status_type add primary key (st_id);
alter table taxrate add primary key (tx_id);
alter table sector add primary key (sc_id);
alter table industry add primary key (in_id);
alter table exchange add primary key (ex_id);
alter table company add primary key (co_id);
alter table company_competitor add primary key (cp_co_id, cp_comp_co_id, cp_in_id);
alter table security add primary key (s_symb);
alter table last_trade add primary key (lt_s_symb);
alter table financial add primary key (fi_co_id, fi_year, fi_qtr);
alter table news_xref add primary key (nx_ni_id, nx_co_id);
alter table broker add primary key (b_id);
alter table trade_type add primary key (tt_id);
alter table charge add primary key (ch_tt_id, ch_c_tier);
alter table commission_rate add primary key (cr_c_tier, cr_tt_id, cr_ex_id, cr_from_qty);
alter table customer add primary key (c_id);
alter table customer_taxrate add primary key (cx_tx_id, cx_c_id);
alter table customer_account add primary key (ca_id);
alter table account_permission add primary key (ap_ca_id, ap_tax_id);
alter table watch_list add primary key (wl_id);
alter table trade_request add primary key (tr_t_id);
