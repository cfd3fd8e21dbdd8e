\set seed random(1, 1000000000)
begin immediate;
insert into batch_history (month, product_id, quantity, price_cents, amount_cents)
with recursive n(i) as (select 1 union all select i + 1 from n where i < :lines)
select (select max(month) from batch_month) - i % 2, p.product_id, 1 + i % 9, p.price_cents, (1 + i % 9) * p.price_cents
from n join batch_product p on p.product_id = 1 + (:seed + i * 7919) % :products;
insert into batch_job (kind, line_count) values ('post', :lines);
end;
