-- The connections of the load create these indexes in parallel, starting with the index that takes longest.
alter table pgbench_accounts add primary key (aid);
alter table pgbench_tellers add primary key (tid);
alter table pgbench_branches add primary key (bid);
