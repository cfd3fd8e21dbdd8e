-- The schema is the same as on PostgreSQL, except that money and rates are stored as whole hundredths, because SQLite
-- has no exact decimals. Primary keys are created with the tables, because tables are stored in primary key order.
-- bytes: 530
create table zip_code (
    zc_code text not null primary key,
    zc_town text not null,
    zc_div text not null
) without rowid;
create table address (
    ad_id integer primary key,
    ad_line1 text not null,
    ad_line2 text not null,
    ad_zc_code text not null,
    ad_ctry text not null
);
create table status_type (
    st_id text not null primary key,
    st_name text not null
) without rowid;
create table taxrate (
    tx_id text not null primary key,
    tx_name text not null,
    tx_rate integer not null
) without rowid;
create table sector (
    sc_id text not null primary key,
    sc_name text not null
) without rowid;
create table industry (
    in_id text not null primary key,
    in_name text not null,
    in_sc_id text not null
) without rowid;
create table exchange (
    ex_id text not null primary key,
    ex_name text not null,
    ex_num_symb integer not null,
    ex_open integer not null,
    ex_close integer not null,
    ex_desc text not null,
    ex_ad_id integer not null
) without rowid;
create table company (
    co_id integer primary key,
    co_st_id text not null,
    co_name text not null,
    co_in_id text not null,
    co_sp_rate text not null,
    co_ceo text not null,
    co_ad_id integer not null,
    co_desc text not null,
    co_open_date text not null
);
create table company_competitor (
    cp_co_id integer not null,
    cp_comp_co_id integer not null,
    cp_in_id text not null,
    primary key (cp_co_id, cp_comp_co_id, cp_in_id)
) without rowid;
create table security (
    s_symb text not null primary key,
    s_issue text not null,
    s_st_id text not null,
    s_name text not null,
    s_ex_id text not null,
    s_co_id integer not null,
    s_num_out integer not null,
    s_start_date text not null,
    s_exch_date text not null,
    s_pe integer not null,
    s_52wk_high integer not null,
    s_52wk_high_date text not null,
    s_52wk_low integer not null,
    s_52wk_low_date text not null,
    s_dividend integer not null,
    s_yield integer not null
) without rowid;
create table last_trade (
    lt_s_symb text not null primary key,
    lt_dts text not null,
    lt_price integer not null,
    lt_open_price integer not null,
    lt_vol integer not null
) without rowid;
create table daily_market (
    dm_date text not null,
    dm_s_symb text not null,
    dm_close integer not null,
    dm_high integer not null,
    dm_low integer not null,
    dm_vol integer not null,
    primary key (dm_date, dm_s_symb)
) without rowid;
create table financial (
    fi_co_id integer not null,
    fi_year integer not null,
    fi_qtr integer not null,
    fi_qtr_start_date text not null,
    fi_revenue integer not null,
    fi_net_earn integer not null,
    fi_basic_eps integer not null,
    fi_dilut_eps integer not null,
    fi_margin integer not null,
    fi_inventory integer not null,
    fi_assets integer not null,
    fi_liability integer not null,
    fi_out_basic integer not null,
    fi_out_dilut integer not null,
    primary key (fi_co_id, fi_year, fi_qtr)
) without rowid;
create table news_item (
    ni_id integer primary key,
    ni_headline text not null,
    ni_summary text not null,
    ni_item text not null,
    ni_dts text not null,
    ni_source text not null,
    ni_author text not null
);
create table news_xref (
    nx_ni_id integer not null,
    nx_co_id integer not null,
    primary key (nx_ni_id, nx_co_id)
) without rowid;
create table broker (
    b_id integer primary key,
    b_st_id text not null,
    b_name text not null,
    b_num_trades integer not null,
    b_comm_total integer not null
);
create table trade_type (
    tt_id text not null primary key,
    tt_name text not null,
    tt_is_sell integer not null,
    tt_is_mrkt integer not null
) without rowid;
create table charge (
    ch_tt_id text not null,
    ch_c_tier integer not null,
    ch_chrg integer not null,
    primary key (ch_tt_id, ch_c_tier)
) without rowid;
create table commission_rate (
    cr_c_tier integer not null,
    cr_tt_id text not null,
    cr_ex_id text not null,
    cr_from_qty integer not null,
    cr_to_qty integer not null,
    cr_rate integer not null,
    primary key (cr_c_tier, cr_tt_id, cr_ex_id, cr_from_qty)
) without rowid;
create table customer (
    c_id integer primary key,
    c_tax_id text not null,
    c_st_id text not null,
    c_l_name text not null,
    c_f_name text not null,
    c_m_name text not null,
    c_gndr text not null,
    c_tier integer not null,
    c_dob text not null,
    c_ad_id integer not null,
    c_ctry_1 text not null,
    c_area_1 text not null,
    c_local_1 text not null,
    c_ext_1 text not null,
    c_ctry_2 text not null,
    c_area_2 text not null,
    c_local_2 text not null,
    c_ext_2 text not null,
    c_ctry_3 text not null,
    c_area_3 text not null,
    c_local_3 text not null,
    c_ext_3 text not null,
    c_email_1 text not null,
    c_email_2 text not null
);
create table customer_taxrate (
    cx_tx_id text not null,
    cx_c_id integer not null,
    primary key (cx_tx_id, cx_c_id)
) without rowid;
create table customer_account (
    ca_id integer primary key,
    ca_b_id integer not null,
    ca_c_id integer not null,
    ca_name text not null,
    ca_tax_st integer not null,
    ca_bal integer not null
);
create table account_permission (
    ap_ca_id integer not null,
    ap_acl text not null,
    ap_tax_id text not null,
    ap_l_name text not null,
    ap_f_name text not null,
    primary key (ap_ca_id, ap_tax_id)
) without rowid;
create table watch_list (
    wl_id integer primary key,
    wl_c_id integer not null
);
create table watch_item (
    wi_wl_id integer not null,
    wi_s_symb text not null,
    primary key (wi_wl_id, wi_s_symb)
) without rowid;
create table trade (
    t_id integer primary key,
    t_dts text not null,
    t_st_id text not null,
    t_tt_id text not null,
    t_is_cash integer not null,
    t_s_symb text not null,
    t_qty integer not null,
    t_bid_price integer not null,
    t_ca_id integer not null,
    t_exec_name text not null,
    t_trade_price integer,
    t_chrg integer not null,
    t_comm integer not null,
    t_tax integer not null,
    t_lifo integer not null
);
create table trade_history (
    th_t_id integer not null,
    th_st_id text not null,
    th_dts text not null,
    primary key (th_t_id, th_st_id)
) without rowid;
create table trade_request (
    tr_t_id integer primary key,
    tr_tt_id text not null,
    tr_s_symb text not null,
    tr_qty integer not null,
    tr_bid_price integer not null,
    tr_b_id integer not null
);
create table settlement (
    se_t_id integer primary key,
    se_cash_type text not null,
    se_cash_due_date text not null,
    se_amt integer not null
);
create table cash_transaction (
    ct_t_id integer primary key,
    ct_dts text not null,
    ct_amt integer not null,
    ct_name text not null
);
create table holding_summary (
    hs_ca_id integer not null,
    hs_s_symb text not null,
    hs_qty integer not null,
    primary key (hs_ca_id, hs_s_symb)
) without rowid;
create table holding (
    h_t_id integer primary key,
    h_ca_id integer not null,
    h_s_symb text not null,
    h_dts text not null,
    h_price integer not null,
    h_qty integer not null
);
create table holding_history (
    hh_h_t_id integer not null,
    hh_t_id integer not null,
    hh_before_qty integer not null,
    hh_after_qty integer not null,
    primary key (hh_h_t_id, hh_t_id)
) without rowid;
