-- Vacuums the two small tables that bloat under load, as pgbench does when it starts.
vacuum pgbench_branches;
vacuum pgbench_tellers;
