-- Transactions of many statements as functions, for logic=server: the rules are those of the scripts of the same names.
-- A `;` behind `)` stands apart, so that the body stays whole (`base.statements`).
create or replace function brokerage_trade_result(p_trade bigint, p_price decimal(8,2), p_time datetime(3))
returns decimal(12,2) modifies sql data
begin
    declare v_account, v_broker, v_customer, v_lot bigint;
    declare v_type varchar(3) ;
    declare v_symbol varchar(15) ;
    declare v_quantity, v_cash, v_lifo, v_tax_status, v_held, v_summaries, v_signed, v_rest, v_taken, v_lot_quantity int;
    declare v_gain decimal(14,2) default 0;
    declare v_tax, v_commission, v_charge, v_settled decimal(10,2) default 0;
    declare v_lot_price decimal(8,2) ;
    declare v_balance decimal(12,2) ;
    select t_ca_id, t_tt_id, t_s_symb, t_qty, t_is_cash, t_lifo, t_chrg
    into v_account, v_type, v_symbol, v_quantity, v_cash, v_lifo, v_charge from trade where t_id = p_trade;
    if v_account is null then
        signal sqlstate '45000' set message_text = 'there is no such trade';
    end if;
    select ca_b_id, ca_c_id, ca_tax_st into v_broker, v_customer, v_tax_status
    from customer_account where ca_id = v_account for update;
    set v_signed = case when v_type in ('TMS', 'TLS', 'TSL') then -v_quantity else v_quantity end;
    set v_rest = v_signed;
    select coalesce(sum(hs_qty), 0), count(*) into v_held, v_summaries
    from holding_summary where hs_ca_id = v_account and hs_s_symb = v_symbol;
    if v_summaries = 0 then
        insert into holding_summary (hs_ca_id, hs_s_symb, hs_qty) values (v_account, v_symbol, v_signed) ;
    elseif v_held + v_signed <> 0 then
        update holding_summary set hs_qty = v_held + v_signed where hs_ca_id = v_account and hs_s_symb = v_symbol;
    end if;
    if v_held * v_signed < 0 then
        while v_rest <> 0 and v_rest * (v_held + v_signed - v_rest) < 0 do
            if v_lifo = 1 then
                select h_t_id, h_price, h_qty into v_lot, v_lot_price, v_lot_quantity from holding
                where h_ca_id = v_account and h_s_symb = v_symbol order by h_dts desc, h_t_id desc limit 1;
            else
                select h_t_id, h_price, h_qty into v_lot, v_lot_price, v_lot_quantity from holding
                where h_ca_id = v_account and h_s_symb = v_symbol order by h_dts, h_t_id limit 1;
            end if;
            set v_taken = sign(v_rest) * least(abs(v_rest), abs(v_lot_quantity)) ;
            insert into holding_history (hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty)
            values (v_lot, p_trade, v_lot_quantity, v_lot_quantity + v_taken) ;
            if v_lot_quantity + v_taken = 0 then
                delete from holding where h_t_id = v_lot;
            else
                update holding set h_qty = v_lot_quantity + v_taken where h_t_id = v_lot;
            end if;
            set v_gain = v_gain - v_taken * (p_price - v_lot_price) ;
            set v_rest = v_rest - v_taken;
        end while;
    end if;
    if v_rest <> 0 then
        insert into holding (h_t_id, h_ca_id, h_s_symb, h_dts, h_price, h_qty)
        values (p_trade, v_account, v_symbol, p_time, p_price, v_rest) ;
        insert into holding_history (hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty)
        values (p_trade, p_trade, 0, v_rest) ;
    end if;
    if v_held + v_signed = 0 then
        delete from holding_summary where hs_ca_id = v_account and hs_s_symb = v_symbol;
    end if;
    if v_gain > 0 and v_tax_status > 0 then
        select round(sum(tx_rate) * v_gain, 2) into v_tax
        from customer_taxrate join taxrate on tx_id = cx_tx_id where cx_c_id = v_customer;
    end if;
    select round(cr_rate * v_quantity * p_price / 100, 2) into v_commission
    from security
    join customer on c_id = v_customer
    join commission_rate on cr_c_tier = c_tier and cr_tt_id = v_type and cr_ex_id = s_ex_id
    where s_symb = v_symbol and cr_from_qty <= v_quantity and cr_to_qty >= v_quantity;
    update trade set t_comm = v_commission, t_dts = p_time, t_st_id = 'CMPT', t_trade_price = p_price, t_tax = v_tax
    where t_id = p_trade;
    insert into trade_history (th_t_id, th_st_id, th_dts) values (p_trade, 'CMPT', p_time) ;
    update broker set b_comm_total = b_comm_total + v_commission, b_num_trades = b_num_trades + 1
    where b_id = v_broker;
    set v_settled = -v_signed * p_price - v_charge - v_commission - case when v_tax_status = 1 then v_tax else 0 end;
    insert into settlement (se_t_id, se_cash_type, se_cash_due_date, se_amt)
    values (p_trade, case when v_cash = 1 then 'cash' else 'margin' end, date(p_time) + interval 2 day, v_settled) ;
    if v_cash = 1 then
        update customer_account set ca_bal = ca_bal + v_settled where ca_id = v_account;
        insert into cash_transaction (ct_t_id, ct_dts, ct_amt, ct_name)
        select p_trade, p_time, v_settled, concat(tt_name, ': ', v_quantity, ' shares of ', v_symbol)
        from trade_type where tt_id = v_type;
    end if;
    select ca_bal into v_balance from customer_account where ca_id = v_account;
    return v_balance;
end;
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
