-- Columns and types are the same as in `sysbench … prepare`. Tables are stored in primary key order, and rows are
-- loaded in this order.
-- bytes: 252
create table sbtest:n (
    id integer not null auto_increment primary key,
    k integer not null default 0,
    c char(120) not null default '',
    pad char(60) not null default ''
);
