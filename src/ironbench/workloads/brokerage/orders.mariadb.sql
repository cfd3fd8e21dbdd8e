-- A Trade-Order as a function, for logic=server. It follows the same rules as the script.
create or replace function brokerage_trade_order(
    p_trade bigint, p_time datetime(3), p_account bigint, p_owner int, p_tax_id varchar(20), p_first varchar(20),
    p_last varchar(25), p_by_name int, p_symbol varchar(15), p_company varchar(60), p_issue varchar(6), p_type varchar(3),
    p_quantity int, p_limit decimal(8,2), p_margin int, p_lifo int
) returns int modifies sql data
begin
    declare v_broker, v_customer bigint;
    declare v_tax_status, v_tier, v_market, v_meets, v_permitted int;
    declare v_balance decimal(12,2) ;
    declare v_executor, v_name varchar(49) ;
    declare v_symbol varchar(15) ;
    declare v_exchange varchar(6) ;
    declare v_state varchar(4) ;
    declare v_bid decimal(8,2) ;
    declare v_gain, v_spare decimal(20,4) ;
    declare v_charge, v_commission decimal(10,2) ;
    select ca_b_id, ca_c_id, ca_tax_st, ca_bal into v_broker, v_customer, v_tax_status, v_balance
    from customer_account where ca_id = p_account;
    select c_tier, concat(c_f_name, ' ', c_l_name) into v_tier, v_executor from customer where c_id = v_customer;
    select b_name into v_name from broker where b_id = v_broker;
    if p_owner = 0 then
        select count(*), max(concat(ap_f_name, ' ', ap_l_name)) into v_permitted, v_executor from account_permission
        where ap_ca_id = p_account and ap_tax_id = p_tax_id and ap_f_name = p_first and ap_l_name = p_last;
        if v_permitted = 0 then
            return 0;
        end if;
    end if;
    if p_by_name = 1 then
        select s_symb, s_ex_id into v_symbol, v_exchange
        from company join security on s_co_id = co_id where co_name = p_company and s_issue = p_issue;
    else
        select s_symb, s_ex_id into v_symbol, v_exchange
        from security join company on co_id = s_co_id where s_symb = p_symbol;
    end if;
    select tt_is_mrkt, 2 * tt_is_sell - 1, case when tt_is_mrkt = 1 then 'SBMT' else 'PNDG' end,
        case when tt_is_mrkt = 1 then lt_price else p_limit end
    into v_market, v_meets, v_state, v_bid
    from trade_type cross join last_trade where tt_id = p_type and lt_s_symb = v_symbol;
    select coalesce(sum(hs_qty), 0) into v_spare from holding_summary
    where hs_ca_id = p_account and hs_s_symb = v_symbol;
    select coalesce(sum(least(abs(h_qty), p_quantity - met) * (v_bid - h_price) * v_meets), 0) into v_gain
    from (
        select h_qty, h_price, case when p_lifo = 1 then total - running else running - abs(h_qty) end as met
        from (
            select h_qty, h_price, sum(abs(h_qty)) over (order by h_dts, h_t_id) as running,
                sum(abs(h_qty)) over () as total
            from holding where h_ca_id = p_account and h_s_symb = v_symbol and h_qty * v_meets > 0
        ) held
    ) walk
    where met < p_quantity;
    if v_gain > 0 and v_tax_status > 0 then
        select sum(tx_rate) * v_gain into v_spare
        from customer_taxrate join taxrate on tx_id = cx_tx_id where cx_c_id = v_customer;
    end if;
    select ch_chrg, round(cr_rate * p_quantity * v_bid / 100, 2) into v_charge, v_commission
    from charge join commission_rate on cr_c_tier = ch_c_tier and cr_tt_id = ch_tt_id
    where ch_tt_id = p_type and ch_c_tier = v_tier and cr_ex_id = v_exchange
        and cr_from_qty <= p_quantity and cr_to_qty >= p_quantity;
    if p_margin = 1 then
        select v_balance + coalesce(sum(hs_qty * lt_price), 0) into v_spare
        from holding_summary join last_trade on lt_s_symb = hs_s_symb where hs_ca_id = p_account;
    end if;
    insert into trade (t_id, t_dts, t_st_id, t_tt_id, t_is_cash, t_s_symb, t_qty, t_bid_price, t_ca_id, t_exec_name,
        t_trade_price, t_chrg, t_comm, t_tax, t_lifo)
    values (p_trade, p_time, v_state, p_type, 1 - p_margin, v_symbol, p_quantity, v_bid, p_account, v_executor,
        null, v_charge, v_commission, 0, p_lifo) ;
    insert into trade_history (th_t_id, th_st_id, th_dts) values (p_trade, v_state, p_time) ;
    if v_market = 0 then
        insert into trade_request (tr_t_id, tr_tt_id, tr_s_symb, tr_qty, tr_bid_price, tr_b_id)
        values (p_trade, p_type, v_symbol, p_quantity, v_bid, v_broker) ;
    end if;
    return 1;
end;
