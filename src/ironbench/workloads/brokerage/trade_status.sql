-- The fifty newest trades of an account, and the account's owner.
begin;
select t_id, t_dts, st_name, tt_name, t_s_symb, t_qty, t_exec_name, t_chrg, s_name, ex_name
from trade
join status_type on st_id = t_st_id
join trade_type on tt_id = t_tt_id
join security on s_symb = t_s_symb
join exchange on ex_id = s_ex_id
where t_ca_id = :ca_id
order by t_dts desc limit 50;
select c_l_name, c_f_name, b_name
from customer_account
join customer on c_id = ca_c_id
join broker on b_id = ca_b_id
where ca_id = :ca_id;
commit;
