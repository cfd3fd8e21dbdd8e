insert into batch_month values (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12);
insert into batch_ledger
select month, product_id % 8, count(*), sum(amount_cents) from batch_history group by 1, 2;
begin not atomic
    declare last_id bigint;
    select max(line_id) into last_id from batch_history;
    execute immediate concat('do setval(batch_line_seq, ', last_id, ')') ;
end;
-- Sets the number and the amount of each line when the line is inserted.
create trigger batch_priced before insert on batch_history for each row
set new.line_id = nextval(batch_line_seq), new.amount_cents = new.quantity * new.price_cents;
-- In MariaDB, triggers run once for each row. The rows of the ledger exist before lines are inserted, so the trigger
-- need not check whether a row is missing.
create trigger batch_entered after insert on batch_history for each row
update batch_ledger set line_count = line_count + 1, amount_cents = amount_cents + new.amount_cents
where month = new.month and shard = new.product_id % 8;
create trigger batch_corrected after update on batch_history for each row
update batch_ledger set amount_cents = amount_cents + new.amount_cents - old.amount_cents
where month = new.month and shard = new.product_id % 8;
create trigger batch_repriced before update on batch_product for each row
begin
    set new.revision = old.revision + 1;
    insert into batch_price_change values (old.product_id, old.price_cents, new.price_cents) ;
end;
-- Every job first locks the rows of the months instead of the history, because a MariaDB transaction cannot lock a
-- table. The isolation level is read committed, as in PostgreSQL, so a job does not lock rows that it only reads. Lines
-- update the ledger in the order of its key.
create or replace procedure batch_post(seed bigint, wanted integer)
begin
    declare newest, products, months integer;
    declare exit handler for sqlexception begin
        rollback;
        resignal;
    end;
    set transaction isolation level read committed;
    start transaction;
    select count(*) into months from batch_month lock in share mode;
    select max(month) into newest from batch_month;
    select max(product_id) into products from batch_product;
    set statement max_recursive_iterations = 4294967295 for
    insert into batch_history (line_id, month, product_id, quantity, price_cents, amount_cents)
    with recursive series(n) as (select 1 union all select n + 1 from series where n < wanted)
    select 0, newest - n % 2, p.product_id, 1 + n % 9, p.price_cents, 0
    from series join batch_product p on p.product_id = 1 + (seed + n * 7919) % products
    order by newest - n % 2, p.product_id % 8;
    insert into batch_job values (nextval(batch_job_seq), 'post', wanted) ;
    commit;
end;
create or replace procedure batch_reprice(first_id integer, products integer, added integer)
begin
    declare newest, months integer;
    declare touched bigint;
    declare exit handler for sqlexception begin
        rollback;
        resignal;
    end;
    set transaction isolation level read committed;
    start transaction;
    select count(*) into months from batch_month lock in share mode;
    select max(month) into newest from batch_month;
    update batch_product set price_cents = 100 + (price_cents + added) % 99900
    where product_id between first_id and first_id + products - 1 order by product_id;
    update batch_history h set price_cents = (select p.price_cents from batch_product p where p.product_id = h.product_id),
        amount_cents = quantity * price_cents
    where month = newest and product_id between first_id and first_id + products - 1 order by product_id % 8;
    set touched = row_count() ;
    insert into batch_job values (nextval(batch_job_seq), 'reprice', touched) ;
    commit;
end;
-- In MariaDB, every statement that changes partitions commits. Therefore only one job at a time runs `age`, and a job
-- first removes what an interrupted job left behind: a partition without its month, at either end.
create or replace procedure batch_tidy()
begin
    declare oldest, newest integer;
    select min(month), max(month) into oldest, newest from batch_month;
    execute immediate concat('alter table batch_history drop partition if exists batch_history_', oldest - 1) ;
    execute immediate concat('alter table batch_history drop partition if exists batch_history_', newest + 1) ;
end;
create or replace procedure batch_age()
begin
    declare oldest, newest, months integer;
    declare held bigint;
    declare turn varchar(64) default left(concat('batch_age.', database()), 64) ;
    declare exit handler for sqlexception begin
        rollback;
        do release_lock(turn) ;
        resignal;
    end;
    if not coalesce(get_lock(turn, 86400), 0) then
        signal sqlstate '45000' set message_text = 'another ageing has not ended within a day';
    end if;
    select max(month) + 1 into newest from batch_month;
    execute immediate concat('alter table batch_history add partition if not exists (partition batch_history_', newest,
                             ' values less than (', newest + 1, '))') ;
    set transaction isolation level read committed;
    start transaction;
    select count(*) into months from batch_month for update;
    select min(month) into oldest from batch_month;
    insert into batch_archive
    select oldest, count(*), coalesce(sum(amount_cents), 0) from batch_history where month = oldest;
    select line_count into held from batch_archive where month = oldest;
    delete from batch_ledger where month = oldest;
    delete from batch_month where month = oldest;
    insert into batch_month values (newest) ;
    insert into batch_ledger values (newest, 0, 0, 0), (newest, 1, 0, 0), (newest, 2, 0, 0), (newest, 3, 0, 0),
                                    (newest, 4, 0, 0), (newest, 5, 0, 0), (newest, 6, 0, 0), (newest, 7, 0, 0) ;
    insert into batch_job values (nextval(batch_job_seq), 'age', held) ;
    commit;
    execute immediate concat('alter table batch_history drop partition if exists batch_history_', oldest) ;
    do release_lock(turn) ;
end;
