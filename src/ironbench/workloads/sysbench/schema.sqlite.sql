-- sysbench's tables in SQLite's dialect.
-- bytes: 217
create table sbtest:n (
    id integer primary key,
    k integer not null default 0,
    c char(120) not null default '',
    pad char(60) not null default ''
);
