-- A reduced form of the workload without partitions, stored procedures and sequences. A job is a transaction of several
-- statements.
-- bytes: 9000000
create table batch_product (
    product_id integer primary key, price_cents integer not null, revision integer not null);
create table batch_history (
    line_id integer primary key, month integer not null, product_id integer not null, quantity integer not null,
    price_cents integer not null, amount_cents integer not null);
create table batch_month (month integer primary key);
create table batch_ledger (
    month integer not null, shard integer not null, line_count integer not null, amount_cents integer not null,
    primary key (month, shard)) without rowid;
create table batch_archive (month integer primary key, line_count integer not null, amount_cents integer not null);
create table batch_price_change (product_id integer not null, old_cents integer not null, new_cents integer not null);
create table batch_job (job_id integer primary key, kind text not null, line_count integer not null);
