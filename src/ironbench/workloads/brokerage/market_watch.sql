-- The change in value, in percent since a given day, of the securities of a watch list, an account or an industry.
begin;
\if :mode = 1
select 100.0 * sum(s_num_out * lt_price) / sum(s_num_out * dm_close) - 100 as change_percent
from watch_list
join watch_item on wi_wl_id = wl_id
join security on s_symb = wi_s_symb
join last_trade on lt_s_symb = s_symb
join daily_market on dm_s_symb = s_symb and dm_date = :start_day
where wl_c_id = :c_id;
\elif :mode = 2
select 100.0 * sum(s_num_out * lt_price) / sum(s_num_out * dm_close) - 100 as change_percent
from holding_summary
join security on s_symb = hs_s_symb
join last_trade on lt_s_symb = s_symb
join daily_market on dm_s_symb = s_symb and dm_date = :start_day
where hs_ca_id = :ca_id;
\else
select 100.0 * sum(s_num_out * lt_price) / sum(s_num_out * dm_close) - 100 as change_percent
from industry
join company on co_in_id = in_id
join security on s_co_id = co_id
join last_trade on lt_s_symb = s_symb
join daily_market on dm_s_symb = s_symb and dm_date = :start_day
where in_name = :industry and co_id between :co_first and :co_last;
\endif
commit;
