-- The indexes are the same as on PostgreSQL, except the primary keys: tables are stored in primary key order, so their
-- keys already exist.
-- bytes: 800000000
create index lineitem_part on lineitem (l_partkey, l_suppkey);
create index lineitem_supplier on lineitem (l_suppkey);
create index lineitem_shipdate on lineitem (l_shipdate);
create index orders_customer on orders (o_custkey);
create index orders_orderdate on orders (o_orderdate);
create index partsupp_supplier on partsupp (ps_suppkey);
create index customer_nation on customer (c_nationkey);
create index supplier_nation on supplier (s_nationkey);
create index nation_region on nation (n_regionkey);
