-- The indexes have the same names as in sysbench. The sequence continues after the loaded rows.
alter table sbtest:n add primary key (id);
create index k_:n on sbtest:n (k);
select setval('sbtest:n_id_seq', :size);
