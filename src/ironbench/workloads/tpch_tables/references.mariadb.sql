-- All ten foreign keys of the specification; the clause allows all or none (1.4.2.3). Loaded rows are not checked,
-- because the generator creates only valid references.
set statement foreign_key_checks = 0 for
alter table nation add foreign key (n_regionkey) references region (r_regionkey);
set statement foreign_key_checks = 0 for
alter table supplier add foreign key (s_nationkey) references nation (n_nationkey);
set statement foreign_key_checks = 0 for
alter table customer add foreign key (c_nationkey) references nation (n_nationkey);
set statement foreign_key_checks = 0 for
alter table partsupp add foreign key (ps_partkey) references part (p_partkey);
set statement foreign_key_checks = 0 for
alter table partsupp add foreign key (ps_suppkey) references supplier (s_suppkey);
set statement foreign_key_checks = 0 for
alter table orders add foreign key (o_custkey) references customer (c_custkey);
set statement foreign_key_checks = 0 for
alter table lineitem add foreign key (l_orderkey) references orders (o_orderkey);
set statement foreign_key_checks = 0 for
alter table lineitem add foreign key (l_partkey) references part (p_partkey);
set statement foreign_key_checks = 0 for
alter table lineitem add foreign key (l_suppkey) references supplier (s_suppkey);
set statement foreign_key_checks = 0 for
alter table lineitem add foreign key (l_partkey, l_suppkey) references partsupp (ps_partkey, ps_suppkey);
