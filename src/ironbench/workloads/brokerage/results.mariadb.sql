-- A Trade-Result as a function, for logic=server. It follows the same rules as the script. A space separates `)` from
-- `;` at the end of a line, because `);` would end the statement (`sql_files.statements`).
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
