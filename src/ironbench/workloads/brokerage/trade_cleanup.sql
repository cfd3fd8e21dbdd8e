-- Runs before a trial. Cancels open orders that an earlier trial left behind; pending limit orders are first marked as
-- submitted. History rows that an interrupted cleanup has already inserted are not inserted again.
insert into trade_history (th_t_id, th_st_id, th_dts)
select tr_t_id, 'SBMT', t_dts from trade_request join trade on t_id = tr_t_id
where not exists (select 1 from trade_history where th_t_id = tr_t_id and th_st_id = 'SBMT');
delete from trade_request;
insert into trade_history (th_t_id, th_st_id, th_dts)
select t_id, 'CNCL', t_dts from trade
where t_st_id in ('PNDG', 'SBMT')
    and not exists (select 1 from trade_history where th_t_id = t_id and th_st_id = 'CNCL');
update trade set t_st_id = 'CNCL' where t_st_id in ('PNDG', 'SBMT');
