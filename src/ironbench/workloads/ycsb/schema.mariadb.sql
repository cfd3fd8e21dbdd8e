-- YCSB's table for relational databases. The table is stored in primary key order, and rows are loaded in random order
-- of the key.
create table usertable (
    ycsb_key varchar(255) not null primary key,
    :fields
);
