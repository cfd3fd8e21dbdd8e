\set first random(1, :products - :repriced + 1)
\set change random(1, 5000)
begin immediate;
update batch_product set price_cents = 100 + (price_cents + :change) % 99900
where product_id between :first and :first + :repriced - 1;
update batch_history set (price_cents, amount_cents) =
    (select p.price_cents, quantity * p.price_cents from batch_product p where p.product_id = batch_history.product_id)
where month = (select max(month) from batch_month) and product_id between :first and :first + :repriced - 1;
insert into batch_job (kind, line_count) values ('reprice', changes());
end;
