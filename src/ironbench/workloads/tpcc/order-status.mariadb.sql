-- A customer asks for the newest order and its lines.
begin;
\if :by_name
select c_id
from (
    select c_id, row_number() over (order by c_first, c_id) as place, count(*) over () as namesakes
    from customer where c_w_id = :c_w_id and c_d_id = :c_d_id and c_last = :c_last
) named
where place = (namesakes + 1) div 2 \gset
\endif
select c_balance, c_first, c_middle, c_last from customer
where c_w_id = :c_w_id and c_d_id = :c_d_id and c_id = :c_id;
select o_id, o_entry_d, o_carrier_id from orders
where o_w_id = :c_w_id and o_d_id = :c_d_id and o_c_id = :c_id order by o_id desc limit 1 \gset
select ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d from order_line
where ol_w_id = :c_w_id and ol_d_id = :c_d_id and ol_o_id = :o_id;
commit;
