-- Columns and types as `sysbench … prepare` makes them. Rows come in the order of their key, which is the table.
-- bytes: 252
create table sbtest:n (
    id integer not null auto_increment primary key,
    k integer not null default 0,
    c char(120) not null default '',
    pad char(60) not null default ''
);
