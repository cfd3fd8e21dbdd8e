-- Total value of the pending limit orders in one sector, for each of some brokers.
begin;
select b_name, sum(tr_qty * tr_bid_price) as volume
from sector
join industry on in_sc_id = sc_id
join company on co_in_id = in_id
join security on s_co_id = co_id
join trade_request on tr_s_symb = s_symb
join broker on b_id = tr_b_id
where sc_name = :sector and b_name in (select name from json_table(:brokers, '$[*]' columns (name varchar(49) path '$')) named)
group by b_name
order by volume desc;
commit;
