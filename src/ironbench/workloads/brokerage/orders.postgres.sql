-- A Trade-Order as a function, for logic=server. It follows the same rules as the script.
create or replace function brokerage_trade_order(
    number bigint, at_time timestamp, account_id bigint, owner integer, tax_number text, first_name text, last_name text,
    by_name integer, wanted text, firm text, share text, kind text, amount integer, bid_limit numeric, margin integer,
    lifo integer
) returns integer
language plpgsql as $$
    declare
        account customer_account%rowtype;
        asking customer%rowtype;
        what security%rowtype;
        type trade_type%rowtype;
        executor text;
        bid numeric;
        state text;
        gain numeric;
        fee numeric;
        comm numeric;
    begin
        select * into strict account from customer_account where ca_id = account_id;
        select * into strict asking from customer where c_id = account.ca_c_id;
        perform b_name from broker where b_id = account.ca_b_id;
        executor := concat(asking.c_f_name, ' ', asking.c_l_name) ;
        if owner = 0 then
            select max(concat(ap_f_name, ' ', ap_l_name)) into executor from account_permission
            where ap_ca_id = account_id and ap_tax_id = tax_number and ap_f_name = first_name and ap_l_name = last_name;
            if executor is null then
                return 0;
            end if;
        end if;
        if by_name = 1 then
            select security.* into strict what from company join security on s_co_id = co_id
            where co_name = firm and s_issue = share;
        else
            select security.* into strict what from security join company on co_id = s_co_id where s_symb = wanted;
        end if;
        select * into strict type from trade_type where tt_id = kind;
        select case when type.tt_is_mrkt = 1 then lt_price else bid_limit end into strict bid
        from last_trade where lt_s_symb = what.s_symb;
        state := case when type.tt_is_mrkt = 1 then 'SBMT' else 'PNDG' end;
        perform hs_qty from holding_summary where hs_ca_id = account_id and hs_s_symb = what.s_symb;
        select coalesce(sum(least(abs(h_qty), amount - met) * (bid - h_price) * (2 * type.tt_is_sell - 1)), 0) into gain
        from (
            select h_qty, h_price, case when lifo = 1 then total - running else running - abs(h_qty) end as met
            from (
                select h_qty, h_price, sum(abs(h_qty)) over (order by h_dts, h_t_id) as running,
                    sum(abs(h_qty)) over () as total
                from holding
                where h_ca_id = account_id and h_s_symb = what.s_symb and h_qty * (2 * type.tt_is_sell - 1) > 0
            ) held
        ) walk
        where met < amount;
        if gain > 0 and account.ca_tax_st > 0 then
            perform sum(tx_rate) * gain
            from customer_taxrate join taxrate on tx_id = cx_tx_id where cx_c_id = account.ca_c_id;
        end if;
        select ch_chrg, round(cr_rate * amount * bid / 100, 2) into strict fee, comm
        from charge join commission_rate on cr_c_tier = ch_c_tier and cr_tt_id = ch_tt_id
        where ch_tt_id = kind and ch_c_tier = asking.c_tier and cr_ex_id = what.s_ex_id
            and cr_from_qty <= amount and cr_to_qty >= amount;
        if margin = 1 then
            perform account.ca_bal + coalesce(sum(hs_qty * lt_price), 0)
            from holding_summary join last_trade on lt_s_symb = hs_s_symb where hs_ca_id = account_id;
        end if;
        insert into trade (t_id, t_dts, t_st_id, t_tt_id, t_is_cash, t_s_symb, t_qty, t_bid_price, t_ca_id, t_exec_name,
            t_trade_price, t_chrg, t_comm, t_tax, t_lifo)
        values (number, at_time, state, kind, 1 - margin, what.s_symb, amount, bid, account_id, executor,
            null, fee, comm, 0, lifo) ;
        insert into trade_history (th_t_id, th_st_id, th_dts) values (number, state, at_time) ;
        if type.tt_is_mrkt = 0 then
            insert into trade_request (tr_t_id, tr_tt_id, tr_s_symb, tr_qty, tr_bid_price, tr_b_id)
            values (number, kind, what.s_symb, amount, bid, account.ca_b_id) ;
        end if;
        return 1;
    end
$$;
