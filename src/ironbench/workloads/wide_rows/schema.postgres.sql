-- The payload is stored in full: neither compressed nor moved out of the row (PostgreSQL 18 documentation, 66.2).
create table wide_row (
    id bigint :identity primary key,
    number bigint not null,
    moment timestamp not null,
    amount integer not null,
    payload text not null
);
alter table wide_row alter column payload set storage plain;
