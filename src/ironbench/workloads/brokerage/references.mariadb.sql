-- All 49 foreign keys of TPC-E. Loaded rows are not checked, because the generator creates only valid references.
set statement foreign_key_checks = 0 for
alter table account_permission add foreign key (ap_ca_id) references customer_account (ca_id);
set statement foreign_key_checks = 0 for
alter table customer add foreign key (c_st_id) references status_type (st_id);
set statement foreign_key_checks = 0 for
alter table customer add foreign key (c_ad_id) references address (ad_id);
set statement foreign_key_checks = 0 for
alter table customer_account add foreign key (ca_b_id) references broker (b_id);
set statement foreign_key_checks = 0 for
alter table customer_account add foreign key (ca_c_id) references customer (c_id);
set statement foreign_key_checks = 0 for
alter table customer_taxrate add foreign key (cx_tx_id) references taxrate (tx_id);
set statement foreign_key_checks = 0 for
alter table customer_taxrate add foreign key (cx_c_id) references customer (c_id);
set statement foreign_key_checks = 0 for
alter table holding add foreign key (h_t_id) references trade (t_id);
set statement foreign_key_checks = 0 for
alter table holding add foreign key (h_ca_id, h_s_symb) references holding_summary (hs_ca_id, hs_s_symb);
set statement foreign_key_checks = 0 for
alter table holding_history add foreign key (hh_h_t_id) references trade (t_id);
set statement foreign_key_checks = 0 for
alter table holding_history add foreign key (hh_t_id) references trade (t_id);
set statement foreign_key_checks = 0 for
alter table holding_summary add foreign key (hs_ca_id) references customer_account (ca_id);
set statement foreign_key_checks = 0 for
alter table holding_summary add foreign key (hs_s_symb) references security (s_symb);
set statement foreign_key_checks = 0 for
alter table watch_item add foreign key (wi_wl_id) references watch_list (wl_id);
set statement foreign_key_checks = 0 for
alter table watch_item add foreign key (wi_s_symb) references security (s_symb);
set statement foreign_key_checks = 0 for
alter table watch_list add foreign key (wl_c_id) references customer (c_id);
set statement foreign_key_checks = 0 for
alter table broker add foreign key (b_st_id) references status_type (st_id);
set statement foreign_key_checks = 0 for
alter table cash_transaction add foreign key (ct_t_id) references trade (t_id);
set statement foreign_key_checks = 0 for
alter table charge add foreign key (ch_tt_id) references trade_type (tt_id);
set statement foreign_key_checks = 0 for
alter table commission_rate add foreign key (cr_tt_id) references trade_type (tt_id);
set statement foreign_key_checks = 0 for
alter table commission_rate add foreign key (cr_ex_id) references exchange (ex_id);
set statement foreign_key_checks = 0 for
alter table settlement add foreign key (se_t_id) references trade (t_id);
set statement foreign_key_checks = 0 for
alter table trade add foreign key (t_st_id) references status_type (st_id);
set statement foreign_key_checks = 0 for
alter table trade add foreign key (t_tt_id) references trade_type (tt_id);
set statement foreign_key_checks = 0 for
alter table trade add foreign key (t_s_symb) references security (s_symb);
set statement foreign_key_checks = 0 for
alter table trade add foreign key (t_ca_id) references customer_account (ca_id);
set statement foreign_key_checks = 0 for
alter table trade_history add foreign key (th_t_id) references trade (t_id);
set statement foreign_key_checks = 0 for
alter table trade_history add foreign key (th_st_id) references status_type (st_id);
set statement foreign_key_checks = 0 for
alter table trade_request add foreign key (tr_t_id) references trade (t_id);
set statement foreign_key_checks = 0 for
alter table trade_request add foreign key (tr_tt_id) references trade_type (tt_id);
set statement foreign_key_checks = 0 for
alter table trade_request add foreign key (tr_s_symb) references security (s_symb);
set statement foreign_key_checks = 0 for
alter table trade_request add foreign key (tr_b_id) references broker (b_id);
set statement foreign_key_checks = 0 for
alter table company add foreign key (co_st_id) references status_type (st_id);
set statement foreign_key_checks = 0 for
alter table company add foreign key (co_in_id) references industry (in_id);
set statement foreign_key_checks = 0 for
alter table company add foreign key (co_ad_id) references address (ad_id);
set statement foreign_key_checks = 0 for
alter table company_competitor add foreign key (cp_co_id) references company (co_id);
set statement foreign_key_checks = 0 for
alter table company_competitor add foreign key (cp_comp_co_id) references company (co_id);
set statement foreign_key_checks = 0 for
alter table company_competitor add foreign key (cp_in_id) references industry (in_id);
set statement foreign_key_checks = 0 for
alter table daily_market add foreign key (dm_s_symb) references security (s_symb);
set statement foreign_key_checks = 0 for
alter table exchange add foreign key (ex_ad_id) references address (ad_id);
set statement foreign_key_checks = 0 for
alter table financial add foreign key (fi_co_id) references company (co_id);
set statement foreign_key_checks = 0 for
alter table industry add foreign key (in_sc_id) references sector (sc_id);
set statement foreign_key_checks = 0 for
alter table last_trade add foreign key (lt_s_symb) references security (s_symb);
set statement foreign_key_checks = 0 for
alter table news_xref add foreign key (nx_ni_id) references news_item (ni_id);
set statement foreign_key_checks = 0 for
alter table news_xref add foreign key (nx_co_id) references company (co_id);
set statement foreign_key_checks = 0 for
alter table security add foreign key (s_st_id) references status_type (st_id);
set statement foreign_key_checks = 0 for
alter table security add foreign key (s_ex_id) references exchange (ex_id);
set statement foreign_key_checks = 0 for
alter table security add foreign key (s_co_id) references company (co_id);
set statement foreign_key_checks = 0 for
alter table address add foreign key (ad_zc_code) references zip_code (zc_code);
