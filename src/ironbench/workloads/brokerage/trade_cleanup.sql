-- Before a trial: orders that another one left are cancelled, those that waited for their price as if it had come.
insert into trade_history (th_t_id, th_st_id, th_dts)
select tr_t_id, 'SBMT', t_dts from trade_request join trade on t_id = tr_t_id;
delete from trade_request;
insert into trade_history (th_t_id, th_st_id, th_dts)
select t_id, 'CNCL', t_dts from trade where t_st_id in ('PNDG', 'SBMT');
update trade set t_st_id = 'CNCL' where t_st_id in ('PNDG', 'SBMT');
