-- Deletes the oldest order of a customer and its lines, unless the customer has no other order.
\set dice random(1, 1000000)
\set customer case when :dice <= :active1 then random(1, :last1) \
    when :dice <= :active2 then random(:last1 + 1, :last2) when :dice <= :active3 then random(:last2 + 1, :last3) \
    when :dice <= :active4 then random(:last3 + 1, :last4) when :dice <= :active5 then random(:last4 + 1, :last5) \
    else random(:last5 + 1, :last6) end
delete from igen_order where customer_id = :customer
  and order_no = (select min(order_no) from igen_order where customer_id = :customer
                  having max(order_no) > min(order_no));
