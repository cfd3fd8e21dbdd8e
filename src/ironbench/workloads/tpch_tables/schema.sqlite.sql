-- The tables in SQLite's dialect. SQLite has no exact decimals, and in floating point 0.07 is not between 0.06 - 0.01
-- and 0.06 + 0.01. Therefore money is stored as whole cents, discount and tax as whole percent; quantities are always
-- integers. Dates are text, YYYY-MM-DD. A key of one column is the rowid, which needs no index.
-- bytes: 1000000000
create table region (
    r_regionkey integer primary key,
    r_name text not null,
    r_comment text not null
);
create table nation (
    n_nationkey integer primary key,
    n_name text not null,
    n_regionkey integer not null,
    n_comment text not null
);
create table part (
    p_partkey integer primary key,
    p_name text not null,
    p_mfgr text not null,
    p_brand text not null,
    p_type text not null,
    p_size integer not null,
    p_container text not null,
    p_retailprice integer not null,
    p_comment text not null
);
create table supplier (
    s_suppkey integer primary key,
    s_name text not null,
    s_address text not null,
    s_nationkey integer not null,
    s_phone text not null,
    s_acctbal integer not null,
    s_comment text not null
);
create table partsupp (
    ps_partkey integer not null,
    ps_suppkey integer not null,
    ps_availqty integer not null,
    ps_supplycost integer not null,
    ps_comment text not null
);
create table customer (
    c_custkey integer primary key,
    c_name text not null,
    c_address text not null,
    c_nationkey integer not null,
    c_phone text not null,
    c_acctbal integer not null,
    c_mktsegment text not null,
    c_comment text not null
);
create table orders (
    o_orderkey integer primary key,
    o_custkey integer not null,
    o_orderstatus text not null,
    o_totalprice integer not null,
    o_orderdate text not null,
    o_orderpriority text not null,
    o_clerk text not null,
    o_shippriority integer not null,
    o_comment text not null
);
create table lineitem (
    l_orderkey integer not null,
    l_partkey integer not null,
    l_suppkey integer not null,
    l_linenumber integer not null,
    l_quantity integer not null,
    l_extendedprice integer not null,
    l_discount integer not null,
    l_tax integer not null,
    l_returnflag text not null,
    l_linestatus text not null,
    l_shipdate text not null,
    l_commitdate text not null,
    l_receiptdate text not null,
    l_shipinstruct text not null,
    l_shipmode text not null,
    l_comment text not null
);
