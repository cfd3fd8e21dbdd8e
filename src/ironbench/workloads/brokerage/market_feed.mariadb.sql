-- The ticker in MariaDB's dialect. Rows are locked in the order of symbols, so that two tickers cannot deadlock. One
-- statement locks and selects the limit orders whose price was reached, so that all following statements work on the
-- same orders.
begin;
update (
    select symbol, price, traded
    from (
        select symbol, price, sum(qty) over (partition by symbol) as traded,
            row_number() over (partition by symbol order by place desc) as newest
        from json_table(:ticker, '$[*]' columns (
            place for ordinality, symbol varchar(15) path '$.symbol', price decimal(8,2) path '$.price', qty int path '$.qty'
        )) entry
    ) numbered
    where newest = 1 order by symbol limit 1000
) latest
straight_join last_trade on lt_s_symb = symbol
set lt_price = price, lt_vol = lt_vol + traded, lt_dts = :now_time;
select count(*) as hits, coalesce(json_arrayagg(tr_t_id), '[]') as ids,
    coalesce(group_concat(concat(tr_t_id, ' ', tr_s_symb, ' ', tr_bid_price) order by tr_t_id), '') as triggered
from (
    select distinct tr_t_id, tr_s_symb, tr_bid_price
    from json_table(:ticker, '$[*]' columns (
        symbol varchar(15) path '$.symbol', price decimal(8,2) path '$.price'
    )) entry
    straight_join trade_request on tr_s_symb = symbol
        and case when tr_tt_id = 'TLS' then tr_bid_price <= price else tr_bid_price >= price end
    for update
) hit \gset
\if :hits > 0
update json_table(:ids, '$[*]' columns (id bigint path '$')) hit straight_join trade on t_id = id
set t_st_id = 'SBMT', t_dts = :now_time;
insert into trade_history (th_t_id, th_st_id, th_dts)
select id, 'SBMT', :now_time from json_table(:ids, '$[*]' columns (id bigint path '$')) hit;
delete trade_request from json_table(:ids, '$[*]' columns (id bigint path '$')) hit
straight_join trade_request on tr_t_id = id;
\endif
commit;
