-- The key is the rowid, so the table is stored in key order.
create table wide_row (
    id integer primary key,
    number integer not null,
    moment text not null,
    amount integer not null,
    payload text not null
);
