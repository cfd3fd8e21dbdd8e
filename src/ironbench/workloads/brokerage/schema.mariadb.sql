-- The schema is the same as on PostgreSQL. Primary keys are created with the tables, because tables are stored in
-- primary key order.
-- bytes: 700
create table zip_code (
    zc_code varchar(12) not null primary key,
    zc_town varchar(80) not null,
    zc_div varchar(80) not null
);
create table address (
    ad_id bigint not null primary key,
    ad_line1 varchar(80) not null,
    ad_line2 varchar(80) not null,
    ad_zc_code varchar(12) not null,
    ad_ctry varchar(80) not null
);
create table status_type (
    st_id varchar(4) not null primary key,
    st_name varchar(10) not null
);
create table taxrate (
    tx_id varchar(4) not null primary key,
    tx_name varchar(50) not null,
    tx_rate decimal(6,5) not null
);
create table sector (
    sc_id varchar(3) not null primary key,
    sc_name varchar(30) not null
);
create table industry (
    in_id varchar(4) not null primary key,
    in_name varchar(50) not null,
    in_sc_id varchar(3) not null
);
create table exchange (
    ex_id varchar(6) not null primary key,
    ex_name varchar(100) not null,
    ex_num_symb integer not null,
    ex_open smallint not null,
    ex_close smallint not null,
    ex_desc varchar(150) not null,
    ex_ad_id bigint not null
);
create table company (
    co_id bigint not null primary key,
    co_st_id varchar(4) not null,
    co_name varchar(60) not null,
    co_in_id varchar(4) not null,
    co_sp_rate varchar(4) not null,
    co_ceo varchar(46) not null,
    co_ad_id bigint not null,
    co_desc varchar(150) not null,
    co_open_date date not null
);
create table company_competitor (
    cp_co_id bigint not null,
    cp_comp_co_id bigint not null,
    cp_in_id varchar(4) not null,
    primary key (cp_co_id, cp_comp_co_id, cp_in_id)
);
create table security (
    s_symb varchar(15) not null primary key,
    s_issue varchar(6) not null,
    s_st_id varchar(4) not null,
    s_name varchar(70) not null,
    s_ex_id varchar(6) not null,
    s_co_id bigint not null,
    s_num_out bigint not null,
    s_start_date date not null,
    s_exch_date date not null,
    s_pe decimal(10,2) not null,
    s_52wk_high decimal(8,2) not null,
    s_52wk_high_date date not null,
    s_52wk_low decimal(8,2) not null,
    s_52wk_low_date date not null,
    s_dividend decimal(10,2) not null,
    s_yield decimal(5,2) not null
);
create table last_trade (
    lt_s_symb varchar(15) not null primary key,
    lt_dts datetime(3) not null,
    lt_price decimal(8,2) not null,
    lt_open_price decimal(8,2) not null,
    lt_vol bigint not null
);
create table daily_market (
    dm_date date not null,
    dm_s_symb varchar(15) not null,
    dm_close decimal(8,2) not null,
    dm_high decimal(8,2) not null,
    dm_low decimal(8,2) not null,
    dm_vol bigint not null,
    primary key (dm_date, dm_s_symb)
);
create table financial (
    fi_co_id bigint not null,
    fi_year smallint not null,
    fi_qtr smallint not null,
    fi_qtr_start_date date not null,
    fi_revenue decimal(15,2) not null,
    fi_net_earn decimal(15,2) not null,
    fi_basic_eps decimal(10,2) not null,
    fi_dilut_eps decimal(10,2) not null,
    fi_margin decimal(10,2) not null,
    fi_inventory decimal(15,2) not null,
    fi_assets decimal(15,2) not null,
    fi_liability decimal(15,2) not null,
    fi_out_basic bigint not null,
    fi_out_dilut bigint not null,
    primary key (fi_co_id, fi_year, fi_qtr)
);
create table news_item (
    ni_id bigint not null primary key,
    ni_headline varchar(80) not null,
    ni_summary varchar(255) not null,
    ni_item mediumtext not null,
    ni_dts datetime(3) not null,
    ni_source varchar(30) not null,
    ni_author varchar(30) not null
);
create table news_xref (
    nx_ni_id bigint not null,
    nx_co_id bigint not null,
    primary key (nx_ni_id, nx_co_id)
);
create table broker (
    b_id bigint not null primary key,
    b_st_id varchar(4) not null,
    b_name varchar(49) not null,
    b_num_trades integer not null,
    b_comm_total decimal(12,2) not null
);
create table trade_type (
    tt_id varchar(3) not null primary key,
    tt_name varchar(20) not null,
    tt_is_sell smallint not null,
    tt_is_mrkt smallint not null
);
create table charge (
    ch_tt_id varchar(3) not null,
    ch_c_tier smallint not null,
    ch_chrg decimal(10,2) not null,
    primary key (ch_tt_id, ch_c_tier)
);
create table commission_rate (
    cr_c_tier smallint not null,
    cr_tt_id varchar(3) not null,
    cr_ex_id varchar(6) not null,
    cr_from_qty integer not null,
    cr_to_qty integer not null,
    cr_rate decimal(5,2) not null,
    primary key (cr_c_tier, cr_tt_id, cr_ex_id, cr_from_qty)
);
create table customer (
    c_id bigint not null primary key,
    c_tax_id varchar(20) not null,
    c_st_id varchar(4) not null,
    c_l_name varchar(25) not null,
    c_f_name varchar(20) not null,
    c_m_name varchar(1) not null,
    c_gndr varchar(1) not null,
    c_tier smallint not null,
    c_dob date not null,
    c_ad_id bigint not null,
    c_ctry_1 varchar(3) not null,
    c_area_1 varchar(3) not null,
    c_local_1 varchar(10) not null,
    c_ext_1 varchar(5) not null,
    c_ctry_2 varchar(3) not null,
    c_area_2 varchar(3) not null,
    c_local_2 varchar(10) not null,
    c_ext_2 varchar(5) not null,
    c_ctry_3 varchar(3) not null,
    c_area_3 varchar(3) not null,
    c_local_3 varchar(10) not null,
    c_ext_3 varchar(5) not null,
    c_email_1 varchar(50) not null,
    c_email_2 varchar(50) not null
);
create table customer_taxrate (
    cx_tx_id varchar(4) not null,
    cx_c_id bigint not null,
    primary key (cx_tx_id, cx_c_id)
);
create table customer_account (
    ca_id bigint not null primary key,
    ca_b_id bigint not null,
    ca_c_id bigint not null,
    ca_name varchar(50) not null,
    ca_tax_st smallint not null,
    ca_bal decimal(12,2) not null
);
create table account_permission (
    ap_ca_id bigint not null,
    ap_acl varchar(4) not null,
    ap_tax_id varchar(20) not null,
    ap_l_name varchar(25) not null,
    ap_f_name varchar(20) not null,
    primary key (ap_ca_id, ap_tax_id)
);
create table watch_list (
    wl_id bigint not null primary key,
    wl_c_id bigint not null
);
create table watch_item (
    wi_wl_id bigint not null,
    wi_s_symb varchar(15) not null,
    primary key (wi_wl_id, wi_s_symb)
);
create table trade (
    t_id bigint not null primary key,
    t_dts datetime(3) not null,
    t_st_id varchar(4) not null,
    t_tt_id varchar(3) not null,
    t_is_cash smallint not null,
    t_s_symb varchar(15) not null,
    t_qty integer not null,
    t_bid_price decimal(8,2) not null,
    t_ca_id bigint not null,
    t_exec_name varchar(49) not null,
    t_trade_price decimal(8,2),
    t_chrg decimal(10,2) not null,
    t_comm decimal(10,2) not null,
    t_tax decimal(10,2) not null,
    t_lifo smallint not null
);
create table trade_history (
    th_t_id bigint not null,
    th_st_id varchar(4) not null,
    th_dts datetime(3) not null,
    primary key (th_t_id, th_st_id)
);
create table trade_request (
    tr_t_id bigint not null primary key,
    tr_tt_id varchar(3) not null,
    tr_s_symb varchar(15) not null,
    tr_qty integer not null,
    tr_bid_price decimal(8,2) not null,
    tr_b_id bigint not null
);
create table settlement (
    se_t_id bigint not null primary key,
    se_cash_type varchar(40) not null,
    se_cash_due_date date not null,
    se_amt decimal(10,2) not null
);
create table cash_transaction (
    ct_t_id bigint not null primary key,
    ct_dts datetime(3) not null,
    ct_amt decimal(10,2) not null,
    ct_name varchar(100) not null
);
create table holding_summary (
    hs_ca_id bigint not null,
    hs_s_symb varchar(15) not null,
    hs_qty integer not null,
    primary key (hs_ca_id, hs_s_symb)
);
create table holding (
    h_t_id bigint not null primary key,
    h_ca_id bigint not null,
    h_s_symb varchar(15) not null,
    h_dts datetime(3) not null,
    h_price decimal(8,2) not null,
    h_qty integer not null
);
create table holding_history (
    hh_h_t_id bigint not null,
    hh_t_id bigint not null,
    hh_before_qty integer not null,
    hh_after_qty integer not null,
    primary key (hh_h_t_id, hh_t_id)
);
