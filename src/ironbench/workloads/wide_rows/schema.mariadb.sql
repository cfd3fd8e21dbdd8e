-- Rows lie in the order of their key.
create table wide_row (
    id bigint :identity primary key,
    number bigint not null,
    moment datetime(6) not null,
    amount integer not null,
    payload text not null
);
