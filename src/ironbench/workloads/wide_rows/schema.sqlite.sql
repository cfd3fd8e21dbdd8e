-- The key is the row's own number: rows lie in its order.
create table wide_row (
    id integer primary key,
    number integer not null,
    moment text not null,
    amount integer not null,
    payload text not null
);
