-- Places an order of 1 to 7 lines in one statement, unless the customer already has the maximum number of orders. If
-- another client places an order for the same customer at the same time, the other order gets the number, and this
-- statement places no order.
\set dice random(1, 1000000)
\set customer case when :dice <= :active1 then random(1, :last1) \
    when :dice <= :active2 then random(:last1 + 1, :last2) when :dice <= :active3 then random(:last2 + 1, :last3) \
    when :dice <= :active4 then random(:last3 + 1, :last4) when :dice <= :active5 then random(:last4 + 1, :last5) \
    else random(:last5 + 1, :last6) end
\set lines random(1, :most_lines)
\set first random(1, :products - :most_lines + 1)
\set last :first + :lines - 1
\set quantity random(1, 5)
with placed as (
    insert into igen_order (customer_id, order_no, line_count, total_cents, placed_at, status)
    select newest.customer_id, newest.order_no + 1, basket.line_count, basket.total_cents, current_timestamp, 'placed'
    from (select customer_id, max(order_no) as order_no from igen_order where customer_id = :customer
          group by customer_id having max(order_no) - min(order_no) + 1 < :most_orders) newest,
         (select count(*) as line_count, sum(price_cents) * :quantity as total_cents
          from igen_product where product_id between :first and :last) basket
    on conflict do nothing
    returning customer_id, order_no)
insert into igen_order_line (customer_id, order_no, line_no, quantity, product_id, price_cents)
select placed.customer_id, placed.order_no, product_id - :first + 1, :quantity, product_id, price_cents
from placed, igen_product where product_id between :first and :last;
