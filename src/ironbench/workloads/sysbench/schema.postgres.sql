-- Columns and types are the same as in `sysbench … prepare`. Keys are created after the rows are loaded
-- (keys.postgres.sql).
-- bytes: 255
create table sbtest:n (
    id serial,
    k integer not null default 0,
    c char(120) not null default '',
    pad char(60) not null default ''
);
