"""The rules that the tables keep, at the start and after every trial. Each query counts what breaks its rule.

Money is compared and added alone, so that the texts hold for decimals and for whole hundredths alike.
"""

from __future__ import annotations

from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.workloads.base import checked, one_row

_SELLS = "t_tt_id in ('TMS', 'TLS', 'TSL')"

RULES = {
    "brokers have the trades and commissions of their accounts": """
        select count(*) from broker left join (
            select ca_b_id, count(*) as trades, sum(t_comm) as commissions
            from trade join customer_account on ca_id = t_ca_id where t_st_id = 'CMPT' group by ca_b_id
        ) earned on ca_b_id = b_id
        where b_num_trades <> coalesce(trades, 0) or b_comm_total <> coalesce(commissions, 0)""",
    "holdings add up to their summaries": """
        select (
            select count(*) from holding_summary left join (
                select h_ca_id, h_s_symb, sum(h_qty) as held from holding group by h_ca_id, h_s_symb
            ) held on h_ca_id = hs_ca_id and h_s_symb = hs_s_symb
            where hs_qty <> coalesce(held, 0)
        ) + (
            select count(*) from holding left join holding_summary on hs_ca_id = h_ca_id and hs_s_symb = h_s_symb
            where hs_qty is null
        )""",
    "histories of holdings add up to their trades": f"""
        select count(*) from trade left join (
            select hh_t_id, sum(hh_after_qty - hh_before_qty) as moved from holding_history group by hh_t_id
        ) moves on hh_t_id = t_id
        where t_st_id = 'CMPT' and coalesce(moved, 0) <> case when {_SELLS} then -t_qty else t_qty end""",
    "histories of holdings end at what is held": """
        select count(*) from (
            select hh_h_t_id, sum(hh_after_qty - hh_before_qty) as left_over from holding_history group by hh_h_t_id
        ) ends left join holding on h_t_id = hh_h_t_id
        where left_over <> coalesce(h_qty, 0)""",
    "states of trades agree with their histories": """
        select count(*) from trade left join trade_history on th_t_id = t_id and th_st_id = t_st_id
        where th_t_id is null or th_dts <> t_dts""",
    "orders with a limit were pending, others were not": """
        select count(*) from trade join trade_type on tt_id = t_tt_id
        left join trade_history on th_t_id = t_id and th_st_id = 'PNDG'
        where (tt_is_mrkt = 1) <> (th_t_id is null)""",
    "pending trades wait for their price, and no others": """
        select (
            select count(*) from trade left join trade_request on tr_t_id = t_id
            where t_st_id = 'PNDG' and tr_t_id is null
        ) + (
            select count(*) from trade_request left join trade on t_id = tr_t_id and t_st_id = 'PNDG' where t_id is null
        )""",
    "settlements agree with trades": f"""
        select count(*) from trade join customer_account on ca_id = t_ca_id left join settlement on se_t_id = t_id
        where (t_st_id = 'CMPT') <> (se_t_id is not null) or se_amt <>
            case when {_SELLS} then t_qty * t_trade_price else -t_qty * t_trade_price end
            - t_chrg - t_comm - case when ca_tax_st = 1 then t_tax else 0 end""",
    "cash agrees with settlements": """
        select count(*) from trade left join settlement on se_t_id = t_id left join cash_transaction on ct_t_id = t_id
        where (t_st_id = 'CMPT' and t_is_cash = 1) <> (ct_t_id is not null) or ct_amt <> se_amt""",
}


def kept(session: Session) -> tuple[Check, ...]:
    """All rules, held against all rows."""
    return tuple(checked(name, 0, one_row(session, sql)[0]) for name, sql in RULES.items())
