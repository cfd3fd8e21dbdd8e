-- A customer orders 5 to 15 items. If an item does not exist, the order is rolled back.
begin;
select c_discount, c_last, c_credit, w_tax
from customer join warehouse on w_id = c_w_id
where c_w_id = :w_id and c_d_id = :d_id and c_id = :c_id;
update district set d_next_o_id = d_next_o_id + 1 where d_w_id = :w_id and d_id = :d_id
returning d_next_o_id - 1 as o_id, d_tax \gset
insert into orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
values (:o_id, :d_id, :w_id, :c_id, localtimestamp, :lines, :local);
insert into new_order (no_o_id, no_d_id, no_w_id) values (:o_id, :d_id, :w_id);
select count(*) over () as found, i_id, i_price, i_name, i_data
from unnest(string_to_array(:items, ',')::integer[]) as line (item)
join item on i_id = item \aset
\if :found < :lines
rollback;
\else
-- The lines are in the order of the primary key of stock, so that two orders cannot deadlock.
select s_i_id, s_quantity, s_data,
    case :d_id::integer
        when 1 then s_dist_01 when 2 then s_dist_02 when 3 then s_dist_03 when 4 then s_dist_04 when 5 then s_dist_05
        when 6 then s_dist_06 when 7 then s_dist_07 when 8 then s_dist_08 when 9 then s_dist_09 when 10 then s_dist_10
    end as s_dist
from unnest(string_to_array(:items, ',')::integer[], string_to_array(:suppliers, ',')::integer[])
    as line (item, supplier)
join stock on s_w_id = supplier and s_i_id = item
for no key update of stock;
-- STOCK: the updates of each line's stock (stock.sql) are inserted here.
insert into order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount,
    ol_dist_info)
select :o_id, :d_id, :w_id, number, item, supplier, quantity, quantity * i_price,
    case :d_id::integer
        when 1 then s_dist_01 when 2 then s_dist_02 when 3 then s_dist_03 when 4 then s_dist_04 when 5 then s_dist_05
        when 6 then s_dist_06 when 7 then s_dist_07 when 8 then s_dist_08 when 9 then s_dist_09 when 10 then s_dist_10
    end
from unnest(string_to_array(:items, ',')::integer[], string_to_array(:suppliers, ',')::integer[],
    string_to_array(:quantities, ',')::integer[]) with ordinality as line (item, supplier, quantity, number)
join item on i_id = item
join stock on s_w_id = supplier and s_i_id = item;
commit;
\endif
