-- The table is stored in primary key order.
create table wide_row (
    id bigint :identity primary key,
    number bigint not null,
    moment datetime(6) not null,
    amount integer not null,
    payload text not null
);
