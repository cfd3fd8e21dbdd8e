-- The oldest undelivered order of each district is delivered and charged to its customer. A district without such an
-- order, which has the number 0 below, is skipped.
begin;
\set o1 0
select no_o_id as o1 from new_order where no_w_id = :w_id and no_d_id = 1 order by no_o_id limit 1 for update \aset
\set o2 0
select no_o_id as o2 from new_order where no_w_id = :w_id and no_d_id = 2 order by no_o_id limit 1 for update \aset
\set o3 0
select no_o_id as o3 from new_order where no_w_id = :w_id and no_d_id = 3 order by no_o_id limit 1 for update \aset
\set o4 0
select no_o_id as o4 from new_order where no_w_id = :w_id and no_d_id = 4 order by no_o_id limit 1 for update \aset
\set o5 0
select no_o_id as o5 from new_order where no_w_id = :w_id and no_d_id = 5 order by no_o_id limit 1 for update \aset
\set o6 0
select no_o_id as o6 from new_order where no_w_id = :w_id and no_d_id = 6 order by no_o_id limit 1 for update \aset
\set o7 0
select no_o_id as o7 from new_order where no_w_id = :w_id and no_d_id = 7 order by no_o_id limit 1 for update \aset
\set o8 0
select no_o_id as o8 from new_order where no_w_id = :w_id and no_d_id = 8 order by no_o_id limit 1 for update \aset
\set o9 0
select no_o_id as o9 from new_order where no_w_id = :w_id and no_d_id = 9 order by no_o_id limit 1 for update \aset
\set o10 0
select no_o_id as o10 from new_order where no_w_id = :w_id and no_d_id = 10 order by no_o_id limit 1 for update \aset
\set delivered case when :o1 > 0 then 1 else 0 end + case when :o2 > 0 then 1 else 0 end + case when :o3 > 0 then 1 else 0 end + \
    case when :o4 > 0 then 1 else 0 end + case when :o5 > 0 then 1 else 0 end + case when :o6 > 0 then 1 else 0 end + \
    case when :o7 > 0 then 1 else 0 end + case when :o8 > 0 then 1 else 0 end + case when :o9 > 0 then 1 else 0 end + \
    case when :o10 > 0 then 1 else 0 end
\if :delivered > 0
delete from new_order where no_w_id = :w_id and (no_d_id, no_o_id) in (
    (1, :o1), (2, :o2), (3, :o3), (4, :o4), (5, :o5),
    (6, :o6), (7, :o7), (8, :o8), (9, :o9), (10, :o10)
);
update orders set o_carrier_id = :carrier where o_w_id = :w_id and (o_d_id, o_id) in (
    (1, :o1), (2, :o2), (3, :o3), (4, :o4), (5, :o5),
    (6, :o6), (7, :o7), (8, :o8), (9, :o9), (10, :o10)
);
update order_line set ol_delivery_d = now() where ol_w_id = :w_id and (ol_d_id, ol_o_id) in (
    (1, :o1), (2, :o2), (3, :o3), (4, :o4), (5, :o5),
    (6, :o6), (7, :o7), (8, :o8), (9, :o9), (10, :o10)
);
update customer join (
    select o_d_id, o_c_id, sum(ol_amount) as amount
    from orders join order_line on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id
    where o_w_id = :w_id and (o_d_id, o_id) in (
    (1, :o1), (2, :o2), (3, :o3), (4, :o4), (5, :o5),
    (6, :o6), (7, :o7), (8, :o8), (9, :o9), (10, :o10)
)
    group by o_d_id, o_c_id
) delivered on c_d_id = o_d_id and c_id = o_c_id
set c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
where c_w_id = :w_id;
\endif
commit;
