-- The two small tables that bloat under load, as pgbench vacuums them when it starts.
vacuum pgbench_branches;
vacuum pgbench_tellers;
