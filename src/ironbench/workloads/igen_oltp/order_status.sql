-- The status of a customer's latest order.
\set dice random(1, 1000000)
\set customer case when :dice <= :active1 then random(1, :last1) \
    when :dice <= :active2 then random(:last1 + 1, :last2) when :dice <= :active3 then random(:last2 + 1, :last3) \
    when :dice <= :active4 then random(:last3 + 1, :last4) when :dice <= :active5 then random(:last4 + 1, :last5) \
    else random(:last5 + 1, :last6) end
select order_no, status, placed_at, line_count, total_cents
from igen_order where customer_id = :customer order by order_no desc limit 1;
