-- Columns have the names of TPC-C and the types of go-tpc. Keys are created after the rows are loaded
-- (keys.postgres.sql).
-- bytes: 115000000
create table item (
    i_id integer not null,
    i_im_id integer,
    i_name varchar(24),
    i_price decimal(5, 2),
    i_data varchar(50)
);
create table warehouse (
    w_id integer not null,
    w_name varchar(10),
    w_street_1 varchar(20),
    w_street_2 varchar(20),
    w_city varchar(20),
    w_state char(2),
    w_zip char(9),
    w_tax decimal(4, 4),
    w_ytd decimal(12, 2)
);
create table district (
    d_id integer not null,
    d_w_id integer not null,
    d_name varchar(10),
    d_street_1 varchar(20),
    d_street_2 varchar(20),
    d_city varchar(20),
    d_state char(2),
    d_zip char(9),
    d_tax decimal(4, 4),
    d_ytd decimal(12, 2),
    d_next_o_id integer
);
create table customer (
    c_id integer not null,
    c_d_id integer not null,
    c_w_id integer not null,
    c_first varchar(16),
    c_middle char(2),
    c_last varchar(16),
    c_street_1 varchar(20),
    c_street_2 varchar(20),
    c_city varchar(20),
    c_state char(2),
    c_zip char(9),
    c_phone char(16),
    c_since timestamp,
    c_credit char(2),
    c_credit_lim decimal(12, 2),
    c_discount decimal(4, 4),
    c_balance decimal(12, 2),
    c_ytd_payment decimal(12, 2),
    c_payment_cnt integer,
    c_delivery_cnt integer,
    c_data varchar(500)
);
create table history (
    h_c_id integer not null,
    h_c_d_id integer not null,
    h_c_w_id integer not null,
    h_d_id integer not null,
    h_w_id integer not null,
    h_date timestamp,
    h_amount decimal(6, 2),
    h_data varchar(24)
);
create table new_order (
    no_o_id integer not null,
    no_d_id integer not null,
    no_w_id integer not null
);
create table orders (
    o_id integer not null,
    o_d_id integer not null,
    o_w_id integer not null,
    o_c_id integer,
    o_entry_d timestamp,
    o_carrier_id integer,
    o_ol_cnt integer,
    o_all_local integer
);
create table order_line (
    ol_o_id integer not null,
    ol_d_id integer not null,
    ol_w_id integer not null,
    ol_number integer not null,
    ol_i_id integer not null,
    ol_supply_w_id integer,
    ol_delivery_d timestamp,
    ol_quantity integer,
    ol_amount decimal(6, 2),
    ol_dist_info char(24)
);
create table stock (
    s_i_id integer not null,
    s_w_id integer not null,
    s_quantity integer,
    s_dist_01 char(24),
    s_dist_02 char(24),
    s_dist_03 char(24),
    s_dist_04 char(24),
    s_dist_05 char(24),
    s_dist_06 char(24),
    s_dist_07 char(24),
    s_dist_08 char(24),
    s_dist_09 char(24),
    s_dist_10 char(24),
    s_ytd integer,
    s_order_cnt integer,
    s_remote_cnt integer,
    s_data varchar(50)
);
