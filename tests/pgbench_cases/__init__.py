"""PostgreSQL's own tests of pgbench, run case by case through pgbench and through ironbench."""
