-- pgbench's tables in SQLite's dialect. The filler columns stay empty, because SQLite does not pad values.
-- bytes: 1200000
create table pgbench_history (
    tid integer,
    bid integer,
    aid integer,
    delta integer,
    mtime text,
    filler text
);
create table pgbench_tellers (
    tid integer primary key,
    bid integer,
    tbalance integer,
    filler text
);
create table pgbench_accounts (
    aid integer primary key,
    bid integer,
    abalance integer,
    filler text
);
create table pgbench_branches (
    bid integer primary key,
    bbalance integer,
    filler text
);
