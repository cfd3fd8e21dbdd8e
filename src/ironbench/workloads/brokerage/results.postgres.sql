-- A Trade-Result as a function, for logic=server. It follows the same rules as the script. A space separates `)` from
-- `;` at the end of a line, because `);` would end the statement (`sql_files.statements`).
create or replace function brokerage_trade_result(number bigint, paid numeric, at_time timestamp) returns numeric
language plpgsql set enable_seqscan = off as $$
    declare
        done trade%rowtype;
        account customer_account%rowtype;
        lot record;
        held integer;
        signed integer;
        rest integer;
        taken integer;
        gain numeric := 0;
        tax numeric := 0;
        comm numeric;
        settled numeric;
        balance numeric;
    begin
        select * into strict done from trade where t_id = number;
        select * into strict account from customer_account where ca_id = done.t_ca_id for no key update;
        signed := case when done.t_tt_id in ('TMS', 'TLS', 'TSL') then -done.t_qty else done.t_qty end;
        rest := signed;
        select hs_qty into held from holding_summary where hs_ca_id = done.t_ca_id and hs_s_symb = done.t_s_symb;
        if held is null then
            insert into holding_summary (hs_ca_id, hs_s_symb, hs_qty) values (done.t_ca_id, done.t_s_symb, signed) ;
        elsif held + signed <> 0 then
            update holding_summary set hs_qty = held + signed
            where hs_ca_id = done.t_ca_id and hs_s_symb = done.t_s_symb;
        end if;
        if held * signed < 0 then
            for lot in
                select ctid as place, h_t_id, h_price, h_qty from holding
                where h_ca_id = done.t_ca_id and h_s_symb = done.t_s_symb
                order by case when done.t_lifo = 1 then h_dts end desc, case when done.t_lifo = 1 then h_t_id end desc,
                    h_dts, h_t_id
            loop
                exit when rest = 0;
                taken := sign(rest) * least(abs(rest), abs(lot.h_qty)) ;
                insert into holding_history (hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty)
                values (lot.h_t_id, number, lot.h_qty, lot.h_qty + taken) ;
                if lot.h_qty + taken = 0 then
                    delete from holding where ctid = lot.place;
                else
                    update holding set h_qty = lot.h_qty + taken where ctid = lot.place;
                end if;
                gain := gain - taken * (paid - lot.h_price) ;
                rest := rest - taken;
            end loop;
        end if;
        if rest <> 0 then
            insert into holding (h_t_id, h_ca_id, h_s_symb, h_dts, h_price, h_qty)
            values (number, done.t_ca_id, done.t_s_symb, at_time, paid, rest) ;
            insert into holding_history (hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty)
            values (number, number, 0, rest) ;
        end if;
        if held + signed = 0 then
            delete from holding_summary where hs_ca_id = done.t_ca_id and hs_s_symb = done.t_s_symb;
        end if;
        if gain > 0 and account.ca_tax_st > 0 then
            select round(sum(tx_rate) * gain, 2) into tax
            from customer_taxrate join taxrate on tx_id = cx_tx_id where cx_c_id = account.ca_c_id;
        end if;
        select round(cr_rate * done.t_qty * paid / 100, 2) into strict comm
        from security
        join customer on c_id = account.ca_c_id
        join commission_rate on cr_c_tier = c_tier and cr_tt_id = done.t_tt_id and cr_ex_id = s_ex_id
        where s_symb = done.t_s_symb and cr_from_qty <= done.t_qty and cr_to_qty >= done.t_qty;
        update trade set t_comm = comm, t_dts = at_time, t_st_id = 'CMPT', t_trade_price = paid, t_tax = tax
        where t_id = number;
        insert into trade_history (th_t_id, th_st_id, th_dts) values (number, 'CMPT', at_time) ;
        update broker set b_comm_total = b_comm_total + comm, b_num_trades = b_num_trades + 1
        where b_id = account.ca_b_id;
        settled := -signed * paid - done.t_chrg - comm - case when account.ca_tax_st = 1 then tax else 0 end;
        insert into settlement (se_t_id, se_cash_type, se_cash_due_date, se_amt)
        values (number, case when done.t_is_cash = 1 then 'cash' else 'margin' end, at_time::date + 2, settled) ;
        if done.t_is_cash = 1 then
            update customer_account set ca_bal = ca_bal + settled where ca_id = done.t_ca_id;
            insert into cash_transaction (ct_t_id, ct_dts, ct_amt, ct_name)
            select number, at_time, settled, concat(tt_name, ': ', done.t_qty, ' shares of ', done.t_s_symb)
            from trade_type where tt_id = done.t_tt_id;
        end if;
        select ca_bal into balance from customer_account where ca_id = done.t_ca_id;
        return balance;
    end
$$;
