insert into batch_month select generate_series(1, 12);
insert into batch_ledger
    select month, product_id % 8, count(*), sum(amount_cents) from batch_history group by 1, 2;
select setval('batch_line_seq', (select max(line_id) from batch_history));
-- Sets the number and the amount of each line when the line is inserted.
create or replace function batch_priced() returns trigger language plpgsql as $$
begin
    new.line_id := nextval('batch_line_seq') ;
    new.amount_cents := new.quantity::bigint * new.price_cents;
    return new;
end $$;
create trigger batch_priced before insert on batch_history for each row execute function batch_priced();
-- The trigger updates the ledger after every statement. Rows are updated in the order of the key, so that two jobs
-- cannot deadlock on the ledger.
create or replace function batch_entered() returns trigger language plpgsql as $$
begin
    insert into batch_ledger as l
    select month, product_id % 8, count(*), sum(amount_cents) from entered group by 1, 2 order by 1, 2
    on conflict (month, shard) do update
    set line_count = l.line_count + excluded.line_count, amount_cents = l.amount_cents + excluded.amount_cents;
    return null;
end $$;
create trigger batch_entered after insert on batch_history
    referencing new table as entered for each statement execute function batch_entered();
create or replace function batch_corrected() returns trigger language plpgsql as $$
begin
    insert into batch_ledger as l
    select month, shard, 0, sum(change) from (
        select month, product_id % 8 as shard, amount_cents as change from later
        union all select month, product_id % 8, -amount_cents from earlier) both_sides
    group by 1, 2 order by 1, 2
    on conflict (month, shard) do update set amount_cents = l.amount_cents + excluded.amount_cents;
    return null;
end $$;
create trigger batch_corrected after update on batch_history
    referencing old table as earlier new table as later for each statement execute function batch_corrected();
create or replace function batch_repriced() returns trigger language plpgsql as $$
begin
    new.revision := old.revision + 1;
    insert into batch_price_change values (old.product_id, old.price_cents, new.price_cents) ;
    return new;
end $$;
create trigger batch_repriced before update on batch_product for each row execute function batch_repriced();
-- Every job first locks the history in the strongest mode that the job needs. Jobs may wait for each other, but cannot
-- deadlock.
create or replace procedure batch_post(seed bigint, lines integer) language plpgsql as $$
declare
    newest integer;
    products integer;
begin
    lock table batch_history in row exclusive mode;
    select max(month) into newest from batch_month;
    select max(product_id) into products from batch_product;
    insert into batch_history (line_id, month, product_id, quantity, price_cents, amount_cents)
    select 0, newest - n % 2, p.product_id, 1 + n % 9, p.price_cents, 0
    from generate_series(1, lines) n
    join batch_product p on p.product_id = 1 + (seed + n * 7919::bigint) % products;
    insert into batch_job values (nextval('batch_job_seq'), 'post', lines) ;
end $$;
create or replace procedure batch_reprice(first integer, count integer, change integer) language plpgsql as $$
declare
    newest integer;
    touched bigint;
begin
    lock table batch_history in row exclusive mode;
    select max(month) into newest from batch_month;
    perform 1 from batch_product where product_id between first and first + count - 1 order by product_id for update;
    update batch_product set price_cents = 100 + (price_cents + change) % 99900
    where product_id between first and first + count - 1;
    update batch_history h set price_cents = p.price_cents, amount_cents = h.quantity::bigint * p.price_cents
    from batch_product p
    where p.product_id between first and first + count - 1 and h.product_id = p.product_id and h.month = newest;
    get diagnostics touched = row_count;
    insert into batch_job values (nextval('batch_job_seq'), 'reprice', touched) ;
end $$;
create or replace procedure batch_age() language plpgsql as $$
declare
    oldest integer;
    newest integer;
    held bigint;
begin
    lock table batch_history in access exclusive mode;
    select min(month), max(month) into oldest, newest from batch_month;
    insert into batch_archive
    select oldest, count(*), coalesce(sum(amount_cents), 0) from batch_history where month = oldest
    returning line_count into held;
    execute format('alter table batch_history detach partition batch_history_%s', oldest) ;
    execute format('drop table batch_history_%s', oldest) ;
    delete from batch_ledger where month = oldest;
    delete from batch_month where month = oldest;
    execute format('create table batch_history_%s partition of batch_history for values from (%s) to (%s)',
                   newest + 1, newest + 1, newest + 2) ;
    insert into batch_month values (newest + 1) ;
    insert into batch_job values (nextval('batch_job_seq'), 'age', held) ;
end $$;
