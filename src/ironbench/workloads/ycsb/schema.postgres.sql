-- YCSB's table for relational databases. The key is made after the rows are loaded (keys.postgres.sql).
create table usertable (
    ycsb_key varchar(255) not null,
    :fields
);
