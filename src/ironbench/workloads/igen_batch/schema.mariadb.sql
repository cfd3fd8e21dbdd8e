-- The order history has a partition for each month, as in PostgreSQL. The loader drops sequences in the same way as
-- tables.
-- bytes: 19000000
create sequence batch_line_seq;
create sequence batch_job_seq;
create table batch_product (
    product_id integer not null primary key, price_cents integer not null, revision integer not null);
create table batch_history (
    line_id bigint not null, month integer not null, product_id integer not null, quantity integer not null,
    price_cents integer not null, amount_cents bigint not null, primary key (line_id, month))
    partition by range (month) (
    partition batch_history_1 values less than (2), partition batch_history_2 values less than (3),
    partition batch_history_3 values less than (4), partition batch_history_4 values less than (5),
    partition batch_history_5 values less than (6), partition batch_history_6 values less than (7),
    partition batch_history_7 values less than (8), partition batch_history_8 values less than (9),
    partition batch_history_9 values less than (10), partition batch_history_10 values less than (11),
    partition batch_history_11 values less than (12), partition batch_history_12 values less than (13));
create table batch_month (month integer primary key);
create table batch_ledger (
    month integer not null, shard integer not null, line_count bigint not null, amount_cents bigint not null,
    primary key (month, shard));
create table batch_archive (month integer primary key, line_count bigint not null, amount_cents bigint not null);
create table batch_price_change (product_id integer not null, old_cents integer not null, new_cents integer not null);
create table batch_job (job_id bigint primary key, kind varchar(10) not null, line_count bigint not null);
