-- The transactions as procedures and functions, for procedures=true. They run the statements of the scripts, and return
-- the output of a terminal as one JSON text. A semicolon at the end of an unindented line ends a statement.
create or replace procedure tpcc_new_order(
    p_w_id integer, p_d_id integer, p_c_id integer, p_local integer, p_items text, p_suppliers text,
    p_quantities text, inout p_result text
)
language plpgsql as $$
    declare
        items integer[] := string_to_array(p_items, ',') ;
        suppliers integer[] := string_to_array(p_suppliers, ',') ;
        quantities integer[] := string_to_array(p_quantities, ',') ;
        order_number integer;
        buyer record;
        district_tax numeric;
        found_items json;
        found_stock json;
        total numeric;
    begin
        select c_discount, c_last, c_credit, w_tax into strict buyer
        from customer join warehouse on w_id = c_w_id
        where c_w_id = p_w_id and c_d_id = p_d_id and c_id = p_c_id;
        update district set d_next_o_id = d_next_o_id + 1 where d_w_id = p_w_id and d_id = p_d_id
        returning d_next_o_id - 1, d_tax into strict order_number, district_tax;
        insert into orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
        values (order_number, p_d_id, p_w_id, p_c_id, localtimestamp, cardinality(items), p_local) ;
        insert into new_order (no_o_id, no_d_id, no_w_id) values (order_number, p_d_id, p_w_id) ;
        select json_agg(json_build_array(i_id, i_price, i_name, i_data)) into found_items
        from unnest(items) as line (item) join item on i_id = item;
        if coalesce(json_array_length(found_items), 0) < cardinality(items) then
            rollback;
            p_result := 'Item number is not valid';
            return;
        end if;
        select json_agg(json_build_array(s_i_id, s_quantity, s_data, s_dist)) into found_stock
        from (
            select s_i_id, s_quantity, s_data,
                case p_d_id
                    when 1 then s_dist_01 when 2 then s_dist_02 when 3 then s_dist_03 when 4 then s_dist_04
                    when 5 then s_dist_05 when 6 then s_dist_06 when 7 then s_dist_07 when 8 then s_dist_08
                    when 9 then s_dist_09 when 10 then s_dist_10
                end as s_dist
            from unnest(items, suppliers) as line (item, supplier) join stock on s_w_id = supplier and s_i_id = item
            for no key update of stock
        ) locked;
        for place in 1 .. cardinality(items) loop
            update stock set
                s_quantity = s_quantity - quantities[place]
                    + case when s_quantity >= quantities[place] + 10 then 0 else 91 end,
                s_ytd = s_ytd + quantities[place], s_order_cnt = s_order_cnt + 1,
                s_remote_cnt = s_remote_cnt + case when s_w_id = p_w_id then 0 else 1 end
            where s_w_id = suppliers[place] and s_i_id = items[place];
        end loop;
        with lines as (
            insert into order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity,
                ol_amount, ol_dist_info)
            select order_number, p_d_id, p_w_id, number, item, supplier, quantity, quantity * i_price,
                case p_d_id
                    when 1 then s_dist_01 when 2 then s_dist_02 when 3 then s_dist_03 when 4 then s_dist_04
                    when 5 then s_dist_05 when 6 then s_dist_06 when 7 then s_dist_07 when 8 then s_dist_08
                    when 9 then s_dist_09 when 10 then s_dist_10
                end
            from unnest(items, suppliers, quantities) with ordinality as line (item, supplier, quantity, number)
            join item on i_id = item
            join stock on s_w_id = supplier and s_i_id = item
            returning ol_amount
        )
        select sum(ol_amount) into total from lines;
        total := total * (1 - buyer.c_discount) * (1 + buyer.w_tax + district_tax) ;
        p_result := json_build_array(order_number, total, district_tax, row_to_json(buyer), found_items, found_stock) ;
    end
$$;
create or replace function tpcc_customer(p_w_id integer, p_d_id integer, p_last text) returns integer
language sql stable as $$
    select c_id
    from (
        select c_id, row_number() over (order by c_first, c_id) as place, count(*) over () as namesakes
        from customer where c_w_id = p_w_id and c_d_id = p_d_id and c_last = p_last
    ) named
    where place = (namesakes + 1) / 2
$$;
create or replace function tpcc_payment(
    p_w_id integer, p_d_id integer, p_c_w_id integer, p_c_d_id integer, p_by_name integer, p_c_id integer,
    p_c_last text, p_amount numeric
) returns text
language plpgsql as $$
    declare
        buyer integer := case when p_by_name = 1 then tpcc_customer(p_c_w_id, p_c_d_id, p_c_last) else p_c_id end;
        place record;
        seller record;
        paying record;
    begin
        update district set d_ytd = d_ytd + p_amount where d_w_id = p_w_id and d_id = p_d_id
        returning d_name, d_street_1, d_street_2, d_city, d_state, d_zip into strict place;
        update warehouse set w_ytd = w_ytd + p_amount where w_id = p_w_id
        returning w_name, w_street_1, w_street_2, w_city, w_state, w_zip into strict seller;
        update customer set c_balance = c_balance - p_amount, c_ytd_payment = c_ytd_payment + p_amount,
            c_payment_cnt = c_payment_cnt + 1,
            c_data = case when c_credit = 'BC'
                then left(concat_ws(' ', c_id, c_d_id, c_w_id, p_d_id, p_w_id, p_amount, c_data), 500)
                else c_data
            end
        where c_w_id = p_c_w_id and c_d_id = p_c_d_id and c_id = buyer
        returning c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit,
            c_credit_lim, c_discount, c_balance, case when c_credit = 'BC' then left(c_data, 200) end as c_data
        into strict paying;
        insert into history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
        values (buyer, p_c_d_id, p_c_w_id, p_d_id, p_w_id, localtimestamp, p_amount,
            concat(seller.w_name, '    ', place.d_name)) ;
        return json_build_array(place, seller, paying) ;
    end
$$;
-- The function is `stable`, so that all its queries use the snapshot of the calling statement.
create or replace function tpcc_order_status(
    p_w_id integer, p_d_id integer, p_by_name integer, p_c_id integer, p_c_last text
) returns text
language plpgsql stable as $$
    declare
        buyer integer := case when p_by_name = 1 then tpcc_customer(p_w_id, p_d_id, p_c_last) else p_c_id end;
        asking record;
        newest record;
    begin
        select c_balance, c_first, c_middle, c_last into strict asking from customer
        where c_w_id = p_w_id and c_d_id = p_d_id and c_id = buyer;
        select o_id, o_entry_d, o_carrier_id into strict newest from orders
        where o_w_id = p_w_id and o_d_id = p_d_id and o_c_id = buyer order by o_id desc limit 1;
        return json_build_array(asking, newest, (
            select json_agg(json_build_array(ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d))
            from order_line where ol_w_id = p_w_id and ol_d_id = p_d_id and ol_o_id = newest.o_id
        )) ;
    end
$$;
create or replace function tpcc_delivery(p_w_id integer, p_carrier integer) returns integer
language plpgsql as $$
    declare
        number integer;
        buyer integer;
        delivered integer := 0;
    begin
        for district in 1 .. 10 loop
            -- If another Delivery deletes the oldest row meanwhile, the query finds no row and is repeated for the next one.
            loop
                select no_o_id into number from new_order where no_w_id = p_w_id and no_d_id = district
                order by no_o_id limit 1 for update;
                exit when found
                    or not exists (select 1 from new_order where no_w_id = p_w_id and no_d_id = district) ;
            end loop;
            continue when number is null;
            delete from new_order where no_w_id = p_w_id and no_d_id = district and no_o_id = number;
            update orders set o_carrier_id = p_carrier where o_w_id = p_w_id and o_d_id = district and o_id = number
            returning o_c_id into strict buyer;
            update order_line set ol_delivery_d = localtimestamp
            where ol_w_id = p_w_id and ol_d_id = district and ol_o_id = number;
            update customer set c_delivery_cnt = c_delivery_cnt + 1,
                c_balance = c_balance + (
                    select sum(ol_amount) from order_line
                    where ol_w_id = p_w_id and ol_d_id = district and ol_o_id = number
                )
            where c_w_id = p_w_id and c_d_id = district and c_id = buyer;
            delivered := delivered + 1;
        end loop;
        return delivered;
    end
$$;
create or replace function tpcc_stock_level(p_w_id integer, p_d_id integer, p_threshold integer) returns bigint
language plpgsql as $$
    declare
        next_order integer;
    begin
        select d_next_o_id into strict next_order from district where d_w_id = p_w_id and d_id = p_d_id;
        return (
            select count(distinct s_i_id)
            from order_line join stock on s_w_id = ol_w_id and s_i_id = ol_i_id
            where ol_w_id = p_w_id and ol_d_id = p_d_id and ol_o_id >= next_order - 20 and ol_o_id < next_order
                and s_quantity < p_threshold
        ) ;
    end
$$;
