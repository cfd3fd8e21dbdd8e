-- A customer orders 5 to 15 items. If an item does not exist, the order is rolled back. A variable is text unless it is
-- cast.
begin immediate;
select c_discount, c_last, c_credit, w_tax
from customer join warehouse on w_id = c_w_id
where c_w_id = :w_id and c_d_id = :d_id and c_id = :c_id;
update district set d_next_o_id = d_next_o_id + 1 where d_w_id = :w_id and d_id = :d_id
returning d_next_o_id - 1 as o_id, d_tax \gset
insert into orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
values (:o_id, :d_id, :w_id, :c_id, datetime('now'), :lines, :local);
insert into new_order (no_o_id, no_d_id, no_w_id) values (:o_id, :d_id, :w_id);
-- The lists have a fixed length; unused places repeat the first line.
select count(*) over () as found, i_id, i_price, i_name, i_data from item
where i_id in (:i1, :i2, :i3, :i4, :i5, :i6, :i7, :i8, :i9, :i10, :i11, :i12, :i13, :i14, :i15) \aset
\if :found < :different
rollback;
\else
select s_i_id, s_quantity, s_data,
    case :d_id
        when 1 then s_dist_01 when 2 then s_dist_02 when 3 then s_dist_03 when 4 then s_dist_04 when 5 then s_dist_05
        when 6 then s_dist_06 when 7 then s_dist_07 when 8 then s_dist_08 when 9 then s_dist_09 when 10 then s_dist_10
    end as s_dist
from stock
where (s_w_id, s_i_id) in (
    values
    (:s1, :i1), (:s2, :i2), (:s3, :i3), (:s4, :i4), (:s5, :i5), (:s6, :i6), (:s7, :i7), (:s8, :i8), (:s9, :i9),
    (:s10, :i10), (:s11, :i11), (:s12, :i12), (:s13, :i13), (:s14, :i14), (:s15, :i15)
);
-- STOCK: the updates of each line's stock (stock.sql) are inserted here.
insert into order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount,
    ol_dist_info)
select :o_id, :d_id, :w_id, key + 1, i_id, s_w_id, value ->> 2, (value ->> 2) * i_price,
    case :d_id
        when 1 then s_dist_01 when 2 then s_dist_02 when 3 then s_dist_03 when 4 then s_dist_04 when 5 then s_dist_05
        when 6 then s_dist_06 when 7 then s_dist_07 when 8 then s_dist_08 when 9 then s_dist_09 when 10 then s_dist_10
    end
from json_each('[' || :order_lines || ']')
join item on i_id = value ->> 0
join stock on s_w_id = value ->> 1 and s_i_id = i_id;
commit;
\endif
