-- Made in parallel over the load's connections; the longest first.
alter table pgbench_accounts add primary key (aid);
alter table pgbench_tellers add primary key (tid);
alter table pgbench_branches add primary key (bid);
