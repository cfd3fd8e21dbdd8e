-- The same transaction in SQLite's dialect. SQLite allows only one writer at a time, so explicit locks are not needed.
\set dice random(1, 1000000)
\set customer case when :dice <= :active1 then random(1, :last1) \
    when :dice <= :active2 then random(:last1 + 1, :last2) when :dice <= :active3 then random(:last2 + 1, :last3) \
    when :dice <= :active4 then random(:last3 + 1, :last4) when :dice <= :active5 then random(:last4 + 1, :last5) \
    else random(:last5 + 1, :last6) end
\set region case when :dice <= :active1 then 1 when :dice <= :active2 then 2 when :dice <= :active3 then 3 \
    when :dice <= :active4 then 4 when :dice <= :active5 then 5 else 6 end
\set lines random(1, :most_lines)
\set first random(1, :products - :most_lines + 1)
\set last :first + :lines - 1
\set quantity random(1, 5)
\set category random(1, :categories)
begin immediate;
select name, email, spent_cents from igen_customer where customer_id = :customer;
select p.product_id, p.name, p.price_cents, s.quantity
from igen_product p join igen_stock s on s.product_id = p.product_id and s.region_id = :region
where p.category_id = :category order by p.product_id limit 20;
select product_id, name, description, price_cents from igen_product where product_id between :first and :last;
update igen_stock
set quantity = case when quantity - :quantity < 10 then quantity - :quantity + 100
                       else quantity - :quantity end
where region_id = :region and product_id between :first and :last;
insert into igen_order (customer_id, order_no, line_count, total_cents, placed_at, status)
select newest.customer_id, newest.order_no + 1, basket.line_count, basket.total_cents, current_timestamp, 'placed'
from (select customer_id, max(order_no) as order_no from igen_order where customer_id = :customer
      group by customer_id) newest,
     (select count(*) as line_count, sum(price_cents) * :quantity as total_cents
      from igen_product where product_id between :first and :last) basket;
insert into igen_order_line (customer_id, order_no, line_no, quantity, product_id, price_cents)
select o.customer_id, o.order_no, product_id - :first + 1, :quantity, product_id, price_cents
from (select customer_id, max(order_no) as order_no from igen_order where customer_id = :customer) o, igen_product
where product_id between :first and :last and changes() > 0;
update igen_customer set spent_cents = spent_cents
    + (select total_cents from igen_order where customer_id = :customer order by order_no desc limit 1)
where customer_id = :customer;
update igen_order set status = 'paid' where customer_id = :customer
  and order_no = (select max(order_no) from igen_order where customer_id = :customer);
delete from igen_order where customer_id = :customer
  and order_no = (select min(order_no) from igen_order where customer_id = :customer
                  having max(order_no) > min(order_no));
end;
