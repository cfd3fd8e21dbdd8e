-- The order history has a partition for each month. Months are consecutive numbers instead of dates, so that any number
-- of months can be added.
-- bytes: 18000000
create table batch_product (
    product_id integer not null, price_cents integer not null, revision integer not null);
create table batch_history (
    line_id bigint not null, month integer not null, product_id integer not null, quantity integer not null,
    price_cents integer not null, amount_cents bigint not null) partition by range (month);
create sequence batch_line_seq owned by batch_history.line_id;
create table batch_month (month integer primary key);
create table batch_ledger (
    month integer not null, shard integer not null, line_count bigint not null, amount_cents bigint not null,
    primary key (month, shard)) with (fillfactor = 50);
create table batch_archive (month integer primary key, line_count bigint not null, amount_cents bigint not null);
create table batch_price_change (product_id integer not null, old_cents integer not null, new_cents integer not null);
create table batch_job (job_id bigint primary key, kind text not null, line_count bigint not null);
create sequence batch_job_seq owned by batch_job.job_id;
do $$
begin
    for month in 1..12 loop
        execute format('create table batch_history_%s partition of batch_history for values from (%s) to (%s)',
                       month, month, month + 1) ;
    end loop;
end $$;
