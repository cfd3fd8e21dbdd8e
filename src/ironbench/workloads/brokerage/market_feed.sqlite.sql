-- The ticker in SQLite's dialect. SQLite allows only one writer at a time, so explicit locks are not needed.
begin immediate;
update last_trade set lt_price = price, lt_vol = lt_vol + traded, lt_dts = :now_time
from (
    select symbol, price, sum(qty) over (partition by symbol) as traded,
        row_number() over (partition by symbol order by place desc) as newest
    from (
        select key as place, value ->> 'symbol' as symbol, value ->> 'price' as price, value ->> 'qty' as qty
        from json_each(:ticker)
    ) entry
) latest
where newest = 1 and lt_s_symb = symbol;
select count(*) as hits, json_group_array(tr_t_id) as ids,
    coalesce(group_concat(concat(tr_t_id, ' ', tr_s_symb, ' ', tr_bid_price) order by tr_t_id), '') as triggered
from (
    select distinct tr_t_id, tr_s_symb, tr_bid_price
    from (select value ->> 'symbol' as symbol, value ->> 'price' as price from json_each(:ticker)) entry
    join trade_request on tr_s_symb = symbol
        and case when tr_tt_id = 'TLS' then tr_bid_price <= price else tr_bid_price >= price end
) hit \gset
\if :hits > 0
update trade set t_st_id = 'SBMT', t_dts = :now_time where t_id in (select value from json_each(:ids));
insert into trade_history (th_t_id, th_st_id, th_dts) select value, 'SBMT', :now_time from json_each(:ids);
delete from trade_request where tr_t_id in (select value from json_each(:ids));
\endif
commit;
