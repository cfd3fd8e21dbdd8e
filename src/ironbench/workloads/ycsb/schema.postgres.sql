-- YCSB's table for relational databases. The key is created after the rows are loaded (keys.postgres.sql).
create table usertable (
    ycsb_key varchar(255) not null,
    :fields
);
