-- The data of a product page: the product, and its stock in the visitor's region.
\set dice random(1, 1000000)
\set region case when :dice <= :active1 then 1 when :dice <= :active2 then 2 when :dice <= :active3 then 3 \
    when :dice <= :active4 then 4 when :dice <= :active5 then 5 else 6 end
\set product random(1, :products)
select p.name, p.description, p.price_cents, s.quantity
from igen_product p join igen_stock s on s.product_id = p.product_id
where p.product_id = :product and s.region_id = :region;
