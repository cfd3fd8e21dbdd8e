-- The oldest undelivered order of each district is delivered and charged to its customer. A district without such an
-- order is skipped.
begin;
select count(*) as delivered, array_agg(d_id) as districts, array_agg(o_id) as orders
from generate_series(1, 10) as d_id
cross join lateral (
    select no_o_id as o_id from new_order where no_w_id = :w_id and no_d_id = d_id order by no_o_id limit 1 for update
) oldest \gset
\if :delivered > 0
delete from new_order using unnest(:districts::integer[], :orders::integer[]) as oldest (d_id, o_id)
where no_w_id = :w_id and no_d_id = d_id and no_o_id = o_id;
update orders set o_carrier_id = :carrier
from unnest(:districts::integer[], :orders::integer[]) as oldest (d_id, number)
where o_w_id = :w_id and o_d_id = d_id and o_id = number;
update order_line set ol_delivery_d = localtimestamp
from unnest(:districts::integer[], :orders::integer[]) as oldest (d_id, o_id)
where ol_w_id = :w_id and ol_d_id = d_id and ol_o_id = o_id;
update customer set c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
from (
    select o_d_id, o_c_id, sum(ol_amount) as amount
    from unnest(:districts::integer[], :orders::integer[]) as oldest (d_id, number)
    join orders on o_w_id = :w_id and o_d_id = d_id and o_id = number
    join order_line on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id
    group by o_d_id, o_c_id
) delivered
where c_w_id = :w_id and c_d_id = o_d_id and c_id = o_c_id;
\endif
commit;
