-- The ticker: records the latest prices, and submits the limit orders whose price was reached to the market. Rows are
-- locked in the order of symbols, so that two tickers cannot deadlock.
begin;
with entry as (
    select symbol, price, qty, place
    from rows from (json_to_recordset(:ticker::json) as (symbol text, price numeric, qty integer))
        with ordinality as entry (symbol, price, qty, place)
), latest as (
    select symbol, price, traded
    from (
        select symbol, price, sum(qty) over (partition by symbol) as traded,
            row_number() over (partition by symbol order by place desc) as newest
        from entry
    ) numbered
    where newest = 1
), locked as materialized (
    select lt_s_symb from last_trade where lt_s_symb in (select symbol from entry) order by lt_s_symb for update
)
update last_trade set lt_price = price, lt_vol = lt_vol + traded, lt_dts = :now_time
from locked join latest on symbol = locked.lt_s_symb
where last_trade.lt_s_symb = locked.lt_s_symb;
with entry as (
    select symbol, price from json_to_recordset(:ticker::json) as entry (symbol text, price numeric)
), hit as (
    delete from trade_request using entry
    where tr_s_symb = symbol
        and case when tr_tt_id = 'TLS' then tr_bid_price <= price else tr_bid_price >= price end
    returning tr_t_id, tr_s_symb, tr_bid_price
), submitted as (
    update trade set t_st_id = 'SBMT', t_dts = :now_time from hit where t_id = tr_t_id
), noted as (
    insert into trade_history (th_t_id, th_st_id, th_dts) select tr_t_id, 'SBMT', :now_time from hit
)
select coalesce(string_agg(concat(tr_t_id, ' ', tr_s_symb, ' ', tr_bid_price), ',' order by tr_t_id), '') as triggered
from hit \gset
commit;
