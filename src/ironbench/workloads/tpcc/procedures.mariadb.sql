-- The transactions as procedures, for procedures=true. They run the statements of the scripts, and return the output of
-- a terminal. An error rolls the transaction back and is returned to the client, which retries after a deadlock. A
-- semicolon at the end of an unindented line ends a statement.
create or replace procedure tpcc_new_order(
    p_w_id int, p_d_id int, p_c_id int, p_local int, p_lines text
)
modifies sql data
begin
    declare v_count int default json_length(p_lines) ;
    declare v_line int default 0;
    declare v_item, v_supplier, v_quantity, v_order, v_found int;
    declare v_discount, v_warehouse_tax, v_district_tax decimal(5,4) ;
    declare v_last varchar(16) ;
    declare v_credit char(2) ;
    declare v_items, v_stock longtext;
    declare exit handler for sqlexception
    begin
        rollback;
        resignal;
    end;
    set transaction isolation level read committed;
    start transaction;
    select c_discount, c_last, c_credit, w_tax into v_discount, v_last, v_credit, v_warehouse_tax
    from customer join warehouse on w_id = c_w_id
    where c_w_id = p_w_id and c_d_id = p_d_id and c_id = p_c_id;
    select d_next_o_id, d_tax into v_order, v_district_tax from district
    where d_w_id = p_w_id and d_id = p_d_id for update;
    update district set d_next_o_id = d_next_o_id + 1 where d_w_id = p_w_id and d_id = p_d_id;
    insert into orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
    values (v_order, p_d_id, p_w_id, p_c_id, now(), v_count, p_local) ;
    insert into new_order (no_o_id, no_d_id, no_w_id) values (v_order, p_d_id, p_w_id) ;
    select count(*), json_arrayagg(json_array(i_id, i_price, i_name, i_data)) into v_found, v_items
    from json_table(p_lines, '$[*]' columns (item int path '$[0]')) line join item on i_id = item;
    if v_found < v_count then
        rollback;
        select 'Item number is not valid';
    else
        select json_arrayagg(json_array(s_i_id, s_quantity, s_data, case p_d_id
            when 1 then s_dist_01 when 2 then s_dist_02 when 3 then s_dist_03 when 4 then s_dist_04
            when 5 then s_dist_05 when 6 then s_dist_06 when 7 then s_dist_07 when 8 then s_dist_08
            when 9 then s_dist_09 when 10 then s_dist_10
        end)) into v_stock
        from json_table(p_lines, '$[*]' columns (item int path '$[0]', supplier int path '$[1]')) line
        join stock on s_w_id = supplier and s_i_id = item
        for update;
        while v_line < v_count do
            set v_item = json_value(p_lines, concat('$[', v_line, '][0]')),
                v_supplier = json_value(p_lines, concat('$[', v_line, '][1]')),
                v_quantity = json_value(p_lines, concat('$[', v_line, '][2]')) ;
            update stock set
                s_quantity = s_quantity - v_quantity + case when s_quantity >= v_quantity + 10 then 0 else 91 end,
                s_ytd = s_ytd + v_quantity, s_order_cnt = s_order_cnt + 1,
                s_remote_cnt = s_remote_cnt + case when s_w_id = p_w_id then 0 else 1 end
            where s_w_id = v_supplier and s_i_id = v_item;
            set v_line = v_line + 1;
        end while;
        insert into order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount,
            ol_dist_info)
        select v_order, p_d_id, p_w_id, number, item, supplier, quantity, quantity * i_price,
            case p_d_id
                when 1 then s_dist_01 when 2 then s_dist_02 when 3 then s_dist_03 when 4 then s_dist_04
                when 5 then s_dist_05 when 6 then s_dist_06 when 7 then s_dist_07 when 8 then s_dist_08
                when 9 then s_dist_09 when 10 then s_dist_10
            end
        from json_table(p_lines, '$[*]' columns (
            number for ordinality, item int path '$[0]', supplier int path '$[1]', quantity int path '$[2]'
        )) line
        join item on i_id = item
        join stock on s_w_id = supplier and s_i_id = item;
        commit;
        select v_order, v_discount, v_last, v_credit, v_warehouse_tax, v_district_tax, v_items, v_stock;
    end if;
end;
create or replace procedure tpcc_payment(
    p_w_id int, p_d_id int, p_c_w_id int, p_c_d_id int, p_by_name int, p_c_id int, p_c_last varchar(16),
    p_amount decimal(6,2)
)
modifies sql data
begin
    declare v_customer int default p_c_id;
    declare v_district, v_warehouse varchar(10) ;
    declare exit handler for sqlexception
    begin
        rollback;
        resignal;
    end;
    set transaction isolation level read committed;
    start transaction;
    if p_by_name = 1 then
        select c_id into v_customer
        from (
            select c_id, row_number() over (order by c_first, c_id) as place, count(*) over () as namesakes
            from customer where c_w_id = p_c_w_id and c_d_id = p_c_d_id and c_last = p_c_last
        ) named
        where place = (namesakes + 1) div 2;
    end if;
    update district set d_ytd = d_ytd + p_amount where d_w_id = p_w_id and d_id = p_d_id;
    select d_name into v_district from district where d_w_id = p_w_id and d_id = p_d_id;
    update warehouse set w_ytd = w_ytd + p_amount where w_id = p_w_id;
    select w_name into v_warehouse from warehouse where w_id = p_w_id;
    update customer set c_balance = c_balance - p_amount, c_ytd_payment = c_ytd_payment + p_amount,
        c_payment_cnt = c_payment_cnt + 1,
        c_data = case when c_credit = 'BC'
            then left(concat_ws(' ', c_id, c_d_id, c_w_id, p_d_id, p_w_id, p_amount, c_data), 500)
            else c_data
        end
    where c_w_id = p_c_w_id and c_d_id = p_c_d_id and c_id = v_customer;
    insert into history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
    values (v_customer, p_c_d_id, p_c_w_id, p_d_id, p_w_id, now(), p_amount,
        concat(v_warehouse, '    ', v_district)) ;
    commit;
    select c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit,
        c_credit_lim, c_discount, c_balance, case when c_credit = 'BC' then left(c_data, 200) end as c_data,
        d_name, d_street_1, d_street_2, d_city, d_state, d_zip,
        w_name, w_street_1, w_street_2, w_city, w_state, w_zip
    from customer join district on d_w_id = p_w_id and d_id = p_d_id join warehouse on w_id = p_w_id
    where c_w_id = p_c_w_id and c_d_id = p_c_d_id and c_id = v_customer;
end;
create or replace procedure tpcc_order_status(
    p_w_id int, p_d_id int, p_by_name int, p_c_id int, p_c_last varchar(16)
)
reads sql data
begin
    declare v_customer int default p_c_id;
    declare v_order int;
    set transaction isolation level repeatable read;
    start transaction;
    if p_by_name = 1 then
        select c_id into v_customer
        from (
            select c_id, row_number() over (order by c_first, c_id) as place, count(*) over () as namesakes
            from customer where c_w_id = p_w_id and c_d_id = p_d_id and c_last = p_c_last
        ) named
        where place = (namesakes + 1) div 2;
    end if;
    select o_id into v_order from orders
    where o_w_id = p_w_id and o_d_id = p_d_id and o_c_id = v_customer order by o_id desc limit 1;
    select c_balance, c_first, c_middle, c_last, o_id, o_entry_d, o_carrier_id
    from customer join orders on o_w_id = c_w_id and o_d_id = c_d_id and o_id = v_order
    where c_w_id = p_w_id and c_d_id = p_d_id and c_id = v_customer;
    select ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d from order_line
    where ol_w_id = p_w_id and ol_d_id = p_d_id and ol_o_id = v_order;
    commit;
end;
create or replace procedure tpcc_delivery(p_w_id int, p_carrier int)
modifies sql data
begin
    declare v_district int default 1;
    declare v_delivered int default 0;
    declare v_order, v_customer int;
    declare exit handler for sqlexception
    begin
        rollback;
        resignal;
    end;
    set transaction isolation level repeatable read;
    start transaction;
    while v_district <= 10 do
        set v_order = (
            select no_o_id from new_order where no_w_id = p_w_id and no_d_id = v_district
            order by no_o_id limit 1 for update
        ) ;
        if v_order is not null then
            delete from new_order where no_w_id = p_w_id and no_d_id = v_district and no_o_id = v_order;
            select o_c_id into v_customer from orders
            where o_w_id = p_w_id and o_d_id = v_district and o_id = v_order for update;
            update orders set o_carrier_id = p_carrier
            where o_w_id = p_w_id and o_d_id = v_district and o_id = v_order;
            update order_line set ol_delivery_d = now()
            where ol_w_id = p_w_id and ol_d_id = v_district and ol_o_id = v_order;
            update customer set c_delivery_cnt = c_delivery_cnt + 1,
                c_balance = c_balance + (
                    select sum(ol_amount) from order_line
                    where ol_w_id = p_w_id and ol_d_id = v_district and ol_o_id = v_order
                )
            where c_w_id = p_w_id and c_d_id = v_district and c_id = v_customer;
            set v_delivered = v_delivered + 1;
        end if;
        set v_district = v_district + 1;
    end while;
    commit;
    select v_delivered as delivered;
end;
create or replace procedure tpcc_stock_level(p_w_id int, p_d_id int, p_threshold int)
reads sql data
begin
    declare v_next int;
    set transaction isolation level read committed;
    start transaction;
    select d_next_o_id into v_next from district where d_w_id = p_w_id and d_id = p_d_id;
    select count(distinct s_i_id) as low_stock
    from order_line join stock on s_w_id = ol_w_id and s_i_id = ol_i_id
    where ol_w_id = p_w_id and ol_d_id = p_d_id and ol_o_id >= v_next - 20 and ol_o_id < v_next
        and s_quantity < p_threshold;
    commit;
end;
