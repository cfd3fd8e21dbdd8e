insert into batch_month with recursive n(i) as (select 1 union all select i + 1 from n where i < 12) select i from n;
insert into batch_ledger
    select month, product_id % 8, count(*), sum(amount_cents) from batch_history group by 1, 2;
create trigger batch_entered after insert on batch_history begin
    insert into batch_ledger values (new.month, new.product_id % 8, 1, new.amount_cents)
    on conflict (month, shard) do update
    set line_count = line_count + 1, amount_cents = amount_cents + excluded.amount_cents;
end;
create trigger batch_corrected after update on batch_history begin
    update batch_ledger set amount_cents = amount_cents + new.amount_cents - old.amount_cents
    where month = new.month and shard = new.product_id % 8;
end;
create trigger batch_repriced after update of price_cents on batch_product begin
    update batch_product set revision = revision + 1 where product_id = new.product_id;
    insert into batch_price_change values (old.product_id, old.price_cents, new.price_cents) ;
end;
