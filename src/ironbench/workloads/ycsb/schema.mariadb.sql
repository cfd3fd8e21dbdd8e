-- YCSB's table for relational databases. Rows arrive in random order of the key, which is the table.
create table usertable (
    ycsb_key varchar(255) not null primary key,
    :fields
);
