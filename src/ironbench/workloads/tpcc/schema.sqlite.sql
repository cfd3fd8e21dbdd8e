-- Amounts are whole hundredths, rates (w_tax, d_tax, c_discount) whole ten-thousandths, because SQLite has no exact
-- decimals. Tables with short rows are stored by their primary keys (https://sqlite.org/withoutrowid.html).
-- bytes: 85000000
create table item (
    i_id integer primary key,
    i_im_id integer,
    i_name text,
    i_price integer,
    i_data text
);
create table warehouse (
    w_id integer primary key,
    w_name text,
    w_street_1 text,
    w_street_2 text,
    w_city text,
    w_state text,
    w_zip text,
    w_tax integer,
    w_ytd integer
);
create table district (
    d_id integer not null,
    d_w_id integer not null,
    d_name text,
    d_street_1 text,
    d_street_2 text,
    d_city text,
    d_state text,
    d_zip text,
    d_tax integer,
    d_ytd integer,
    d_next_o_id integer,
    primary key (d_w_id, d_id)
) without rowid;
create table customer (
    c_id integer not null,
    c_d_id integer not null,
    c_w_id integer not null,
    c_first text,
    c_middle text,
    c_last text,
    c_street_1 text,
    c_street_2 text,
    c_city text,
    c_state text,
    c_zip text,
    c_phone text,
    c_since text,
    c_credit text,
    c_credit_lim integer,
    c_discount integer,
    c_balance integer,
    c_ytd_payment integer,
    c_payment_cnt integer,
    c_delivery_cnt integer,
    c_data text,
    primary key (c_w_id, c_d_id, c_id)
);
create table history (
    h_c_id integer not null,
    h_c_d_id integer not null,
    h_c_w_id integer not null,
    h_d_id integer not null,
    h_w_id integer not null,
    h_date text,
    h_amount integer,
    h_data text
);
create table new_order (
    no_o_id integer not null,
    no_d_id integer not null,
    no_w_id integer not null,
    primary key (no_w_id, no_d_id, no_o_id)
) without rowid;
create table orders (
    o_id integer not null,
    o_d_id integer not null,
    o_w_id integer not null,
    o_c_id integer,
    o_entry_d text,
    o_carrier_id integer,
    o_ol_cnt integer,
    o_all_local integer,
    primary key (o_w_id, o_d_id, o_id)
) without rowid;
create table order_line (
    ol_o_id integer not null,
    ol_d_id integer not null,
    ol_w_id integer not null,
    ol_number integer not null,
    ol_i_id integer not null,
    ol_supply_w_id integer,
    ol_delivery_d text,
    ol_quantity integer,
    ol_amount integer,
    ol_dist_info text,
    primary key (ol_w_id, ol_d_id, ol_o_id, ol_number)
) without rowid;
create table stock (
    s_i_id integer not null,
    s_w_id integer not null,
    s_quantity integer,
    s_dist_01 text,
    s_dist_02 text,
    s_dist_03 text,
    s_dist_04 text,
    s_dist_05 text,
    s_dist_06 text,
    s_dist_07 text,
    s_dist_08 text,
    s_dist_09 text,
    s_dist_10 text,
    s_ytd integer,
    s_order_cnt integer,
    s_remote_cnt integer,
    s_data text,
    primary key (s_w_id, s_i_id)
);
