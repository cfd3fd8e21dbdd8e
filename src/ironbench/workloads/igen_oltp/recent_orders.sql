-- The data of a customer page: the customer, and the ten latest orders.
\set dice random(1, 1000000)
\set customer case when :dice <= :active1 then random(1, :last1) \
    when :dice <= :active2 then random(:last1 + 1, :last2) when :dice <= :active3 then random(:last2 + 1, :last3) \
    when :dice <= :active4 then random(:last3 + 1, :last4) when :dice <= :active5 then random(:last4 + 1, :last5) \
    else random(:last5 + 1, :last6) end
select c.name, c.email, c.city, o.order_no, o.status, o.placed_at, o.total_cents
from igen_customer c join igen_order o on o.customer_id = c.customer_id
where c.customer_id = :customer order by o.order_no desc limit 10;
