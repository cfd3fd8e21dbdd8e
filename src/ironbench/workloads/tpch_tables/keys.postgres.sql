-- The keys of the specification (clause 1.4.2). Indexes are allowed only on keys, foreign keys and dates (clause 1.5).
-- bytes: 600000000
alter table region add primary key (r_regionkey);
alter table nation add primary key (n_nationkey);
alter table part add primary key (p_partkey);
alter table supplier add primary key (s_suppkey);
alter table partsupp add primary key (ps_partkey, ps_suppkey);
alter table customer add primary key (c_custkey);
alter table orders add primary key (o_orderkey);
alter table lineitem add primary key (l_orderkey, l_linenumber);
create index lineitem_part on lineitem (l_partkey, l_suppkey);
create index lineitem_supplier on lineitem (l_suppkey);
create index lineitem_shipdate on lineitem (l_shipdate);
create index orders_customer on orders (o_custkey);
create index orders_orderdate on orders (o_orderdate);
create index partsupp_supplier on partsupp (ps_suppkey);
create index customer_nation on customer (c_nationkey);
create index supplier_nation on supplier (s_nationkey);
create index nation_region on nation (n_regionkey);
