-- The latest order of a customer with its lines and the names of its products.
\set dice random(1, 1000000)
\set customer case when :dice <= :active1 then random(1, :last1) \
    when :dice <= :active2 then random(:last1 + 1, :last2) when :dice <= :active3 then random(:last2 + 1, :last3) \
    when :dice <= :active4 then random(:last3 + 1, :last4) when :dice <= :active5 then random(:last4 + 1, :last5) \
    else random(:last5 + 1, :last6) end
select l.line_no, p.name, l.quantity, l.price_cents
from igen_order_line l join igen_product p on p.product_id = l.product_id
where l.customer_id = :customer
  and l.order_no = (select max(order_no) from igen_order where customer_id = :customer)
order by l.line_no;
