-- pgbench's tables in the dialect of SQL Server (not tested).
-- bytes: 20000000
create table pgbench_history (
    tid integer,
    bid integer,
    aid :aid,
    delta integer,
    mtime datetime2,
    filler char(22)
);
create table pgbench_tellers (
    tid integer not null primary key,
    bid integer,
    tbalance integer,
    filler char(84)
);
create table pgbench_accounts (
    aid :aid not null primary key,
    bid integer,
    abalance integer,
    filler char(84)
);
create table pgbench_branches (
    bid integer not null primary key,
    bbalance integer,
    filler char(88)
);
