-- The indexes are the same as on PostgreSQL, except for keys that are the rowid. SQLite joins only with nested loops.
-- Without the indexes on foreign keys, the time of half of the queries would grow with the square of the database size.
-- bytes: 600000000
create unique index partsupp_key on partsupp (ps_partkey, ps_suppkey);
create unique index lineitem_key on lineitem (l_orderkey, l_linenumber);
create index lineitem_part on lineitem (l_partkey, l_suppkey);
create index lineitem_supplier on lineitem (l_suppkey);
create index lineitem_shipdate on lineitem (l_shipdate);
create index orders_customer on orders (o_custkey);
create index orders_orderdate on orders (o_orderdate);
create index partsupp_supplier on partsupp (ps_suppkey);
create index customer_nation on customer (c_nationkey);
create index supplier_nation on supplier (s_nationkey);
create index nation_region on nation (n_regionkey);
