-- Sales by month and group of products, with the value at today's prices.
\set group random(0, 15)
select h.month, count(*), sum(h.quantity), sum(h.amount_cents), sum(h.quantity * p.price_cents)
from batch_history h join batch_product p on p.product_id = h.product_id
where p.product_id % 16 = :group group by h.month order by h.month;
