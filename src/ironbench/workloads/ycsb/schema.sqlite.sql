-- YCSB's table for relational databases.
create table usertable (
    ycsb_key varchar(255) not null primary key,
    :fields
);
