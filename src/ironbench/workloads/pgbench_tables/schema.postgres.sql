-- Columns, types and order are the same as in `pgbench -i`. Keys are created after the rows are loaded
-- (keys.postgres.sql).
-- bytes: 16000000
create table pgbench_history (
    tid integer,
    bid integer,
    aid :aid,
    delta integer,
    mtime timestamp,
    filler char(22)
);
create table pgbench_tellers (
    tid integer not null,
    bid integer,
    tbalance integer,
    filler char(84)
) with (fillfactor = :fillfactor);
create table pgbench_accounts (
    aid :aid not null,
    bid integer,
    abalance integer,
    filler char(84)
) with (fillfactor = :fillfactor);
create table pgbench_branches (
    bid integer not null,
    bbalance integer,
    filler char(88)
) with (fillfactor = :fillfactor);
