-- A customer pays, either in the home warehouse or in another one. 60% of the customers are looked up by last name; if
-- several customers have this name, the middle one in the order of first names pays.
begin;
\if :by_name
select c_id
from (
    select c_id, row_number() over (order by c_first, c_id) as place, count(*) over () as namesakes
    from customer where c_w_id = :c_w_id and c_d_id = :c_d_id and c_last = :c_last
) named
where place = (namesakes + 1) / 2 \gset
\endif
update district set d_ytd = d_ytd + :amount where d_w_id = :w_id and d_id = :d_id
returning d_name, d_street_1, d_street_2, d_city, d_state, d_zip \gset
update warehouse set w_ytd = w_ytd + :amount where w_id = :w_id
returning w_name, w_street_1, w_street_2, w_city, w_state, w_zip \gset
update customer set c_balance = c_balance - :amount, c_ytd_payment = c_ytd_payment + :amount,
    c_payment_cnt = c_payment_cnt + 1,
    c_data = case when c_credit = 'BC'
        then left(concat_ws(' ', c_id, c_d_id, c_w_id, :d_id::text, :w_id::text, :amount::text, c_data), 500)
        else c_data
    end
where c_w_id = :c_w_id and c_d_id = :c_d_id and c_id = :c_id
returning c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit,
    c_credit_lim, c_discount, c_balance, case when c_credit = 'BC' then left(c_data, 200) end as c_data;
insert into history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
values (:c_id, :c_d_id, :c_w_id, :d_id, :w_id, localtimestamp, :amount, concat(:w_name::text, '    ', :d_name::text));
commit;
