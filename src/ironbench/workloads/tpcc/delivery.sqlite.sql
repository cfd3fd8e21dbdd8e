-- The oldest undelivered order of each district is delivered and charged to its customer. A district without such an
-- order is skipped.
begin immediate;
select count(*) as delivered, json_group_array(json_array(d_id, o_id)) as oldest
from (
    select d_id, (select min(no_o_id) from new_order where no_w_id = d_w_id and no_d_id = d_id) as o_id
    from district where d_w_id = :w_id
)
where o_id is not null \gset
\if :delivered > 0
delete from new_order
where no_w_id = :w_id and (no_d_id, no_o_id) in (select value ->> 0, value ->> 1 from json_each(:oldest));
update orders set o_carrier_id = :carrier
where o_w_id = :w_id and (o_d_id, o_id) in (select value ->> 0, value ->> 1 from json_each(:oldest));
update order_line set ol_delivery_d = datetime('now')
where ol_w_id = :w_id and (ol_d_id, ol_o_id) in (select value ->> 0, value ->> 1 from json_each(:oldest));
update customer set c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
from (
    select o_d_id, o_c_id, sum(ol_amount) as amount
    from json_each(:oldest)
    join orders on o_w_id = :w_id and o_d_id = value ->> 0 and o_id = value ->> 1
    join order_line on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id
    group by o_d_id, o_c_id
)
where c_w_id = :w_id and c_d_id = o_d_id and c_id = o_c_id;
\endif
commit;
