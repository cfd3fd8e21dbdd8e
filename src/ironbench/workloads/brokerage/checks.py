"""Consistency rules of the tables, checked at the start and after every trial. The query of a rule counts its
violations. Queries only compare and add money, so that they work if money is stored as decimals or as whole hundredths.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from ironbench.errors import FailureError
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.workloads.base import checked, one_row
from ironbench.workloads.brokerage import transactions
from ironbench.workloads.brokerage.tables import FIRST_TRADE
from ironbench.workloads.commit_check import Commits, commits_check

_SELLS = "t_tt_id in ('TMS', 'TLS', 'TSL')"
BROKERS = "brokers have the trades and commissions of their accounts"


def rules(first: int, sample: range | None = None) -> dict[str, str]:
    """Returns a query for each rule. The key is the rule's name. The queries read only the trades from number `first`
    on, the trades in `sample`, and rows that belong to these trades."""

    def of(trade: str) -> str:
        if not sample:
            return f"{trade} >= {first}"
        return f"({trade} >= {first} or {trade} between {sample.start} and {sample.stop - 1})"

    return {
        BROKERS: """
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
            select hh_t_id, sum(hh_after_qty - hh_before_qty) as moved
            from holding_history where {of("hh_t_id")} group by hh_t_id
        ) moves on hh_t_id = t_id
        where {of("t_id")} and t_st_id = 'CMPT'
            and coalesce(moved, 0) <> case when {_SELLS} then -t_qty else t_qty end""",
        "holding histories end at current holdings": f"""
        select count(*) from (
            select hh_h_t_id, sum(hh_after_qty - hh_before_qty) as left_over from holding_history
            where hh_h_t_id in (select hh_h_t_id from holding_history where {of("hh_t_id")}) group by hh_h_t_id
        ) ends left join holding on h_t_id = hh_h_t_id
        where left_over <> coalesce(h_qty, 0)""",
        "states of trades agree with their histories": f"""
        select count(*) from trade left join trade_history on th_t_id = t_id and th_st_id = t_st_id
        where {of("t_id")} and (th_t_id is null or th_dts <> t_dts)""",
        "limit orders were pending, others were not": f"""
        select count(*) from trade join trade_type on tt_id = t_tt_id
        left join trade_history on th_t_id = t_id and th_st_id = 'PNDG'
        where {of("t_id")} and (tt_is_mrkt = 1) <> (th_t_id is null)""",
        "pending trades and trade requests match": f"""
        select (
            select count(*) from trade left join trade_request on tr_t_id = t_id
            where {of("t_id")} and t_st_id = 'PNDG' and tr_t_id is null
        ) + (
            select count(*) from trade_request left join trade on t_id = tr_t_id and t_st_id = 'PNDG'
            where t_id is null
        )""",
        "settlements agree with trades": f"""
        select count(*) from trade join customer_account on ca_id = t_ca_id left join settlement on se_t_id = t_id
        where {of("t_id")} and ((t_st_id = 'CMPT') <> (se_t_id is not null) or se_amt <>
            case when {_SELLS} then t_qty * t_trade_price else -t_qty * t_trade_price end
            - t_chrg - t_comm - case when ca_tax_st = 1 then t_tax else 0 end)""",
        "cash agrees with settlements": f"""
        select count(*) from trade left join settlement on se_t_id = t_id left join cash_transaction on ct_t_id = t_id
        where {of("t_id")}
            and ((t_st_id = 'CMPT' and t_is_cash = 1) <> (ct_t_id is not null) or ct_amt <> se_amt)""",
    }


RULES = rules(0)
SAMPLE = 50_000
"""Number of earlier trades that are checked after a trial. The check takes less than a second."""
_STEP = 7_919
"""Factor by which samples move when trades are added. The factor is a prime, so that each trial checks different
trades."""


def sample(first: int) -> range:
    """Returns the earlier trades to check after a trial. `first`: number of the trial's first trade. Each trial checks
    different earlier trades."""
    there = first - FIRST_TRADE
    begin = FIRST_TRADE + there * _STEP % max(1, there - SAMPLE)
    return range(begin, min(first, begin + SAMPLE))


def all_rules(session: Session) -> tuple[Check, ...]:
    """Checks every rule on all rows."""
    return tuple(checked(name, 0, one_row(session, sql)[0]) for name, sql in RULES.items())


@dataclass(frozen=True, slots=True)
class BrokerageState:
    """State of the tables before a trial. No transaction is in progress at this time."""

    first: int
    """Lowest number of a trade that this trial can assign."""
    brokers: Mapping[str, tuple[int, Decimal]]
    balances: tuple[Decimal, ...]
    """Checksums of the balances of all accounts, from `_sums`."""
    commits: Commits


def first_trade(session: Session) -> int:
    return one_row(session, "select max(t_id) + 1 from trade")[0]


_FIRST_DAY = date(2005, 1, 3)
_OPENS = time(9)
_DAY = timedelta(hours=8)
"""The business calendar: its first Monday, the start of a business day, and the length of a business day. Business days
are Monday to Friday (crates/…/brokerage/market.rs)."""


def last_time(session: Session, loaded: int) -> int | None:
    """Returns the business time of the last change to trades that earlier trials placed, in milliseconds. Returns None
    if earlier trials placed none. The `loaded` initial trades are not read, because there may be millions of them."""
    last = session.query(f"select max(t_dts) from trade where t_id >= {FIRST_TRADE + loaded}")[0][0]
    return None if last is None else business_ms(datetime.fromisoformat(last))


def business_ms(moment: datetime) -> int:
    """Returns the milliseconds of business hours since the first day of the calendar. The time must be within a
    business day."""
    weeks, weekday = divmod((moment.date() - _FIRST_DAY).days, 7)
    passed = (5 * weeks + weekday) * _DAY + (moment - datetime.combine(moment.date(), _OPENS))
    return passed // timedelta(milliseconds=1)


def read_state(session: Session) -> BrokerageState:
    _cancel_what_was_left(session)
    return BrokerageState(first_trade(session), _brokers(session), _balances(session), Commits.read(session))


def _cancel_what_was_left(session: Session) -> None:
    """Cancels the open orders of an earlier trial. A single transaction cancels them all, so that an interruption
    cannot leave some."""
    session.query("begin")
    try:
        for statement in transactions.cleanup(session.engine):
            session.query(statement)
        session.query("commit")
    except FailureError:
        with suppress(FailureError):
            session.query("rollback")
        raise


def check(session: Session, before: BrokerageState, summary: Mapping[str, Any]) -> tuple[Check, ...]:
    # The commits are read first. Otherwise, the other queries of this session would also be counted.
    commits = commits_check(session, before.commits, summary)
    held = rules(before.first, sample(before.first))
    del held[BROKERS]
    kept = (checked(name, 0, one_row(session, sql)[0]) for name, sql in held.items())
    return (*commits, _paid(session, before), *kept, _cash(session, before), *_counted(session, before, summary))


def _paid(session: Session, before: BrokerageState) -> Check:
    """Checks that the totals of brokers grew by the trades of this trial. Reads only the trades of this trial."""
    earned = session.query(
        "select ca_b_id, count(*), sum(t_comm) from trade join customer_account on ca_id = t_ca_id "
        f"where t_id >= {before.first} and t_st_id = 'CMPT' group by ca_b_id"
    )
    gained = {broker: (int(trades or 0), Decimal(total or 0)) for broker, trades, total in earned}
    wrong = 0
    for broker, (trades, total) in _brokers(session).items():
        more, commissions = gained.get(broker, (0, Decimal(0)))
        was = before.brokers[broker]
        wrong += (was[0] + more, was[1] + commissions) != (trades, total)
    return checked(BROKERS, 0, wrong)


def _cash(session: Session, before: BrokerageState) -> Check:
    trades = f"cash_transaction join trade on t_id = ct_t_id where ct_t_id >= {before.first}"
    due = _sums(session, "ct_amt", "t_ca_id", trades)
    moved = tuple(now - was for now, was in zip(_balances(session), before.balances, strict=True))
    elsewhere = ", of other accounts" if due[0] == moved[0] and due != moved else ""
    return checked("balance changes equal cash of trades", due[0], f"{moved[0]}{elsewhere}", due == moved)


def _balances(session: Session) -> tuple[Decimal, ...]:
    return _sums(session, "ca_bal", "ca_id", "customer_account")


_PRIMES = (1009, 1013)
"""Divisors of account ids. The remainders are an account's weights in `_sums`. Accounts have different weights if their
ids are less than a million apart, which holds for up to a hundred thousand customers."""


def _sums(session: Session, amount: str, account: str, rows: str) -> tuple[Decimal, ...]:
    """Returns the sum of the amounts, and two weighted sums. The weights of an amount are the remainders of its
    account's id (`_PRIMES`). If money is booked to the wrong account, the first sum does not change, but the weighted
    sums do. Sums are used because storing every balance would need memory for each account.
    """
    weighted = (f"sum({amount} * ({account} % {prime}))" for prime in _PRIMES)
    (row,) = session.query(f"select sum({amount}), {', '.join(weighted)} from {rows}")
    return tuple(Decimal(value or 0) for value in row)


def _counted(session: Session, before: BrokerageState, summary: Mapping[str, Any]) -> tuple[Check, ...]:
    """Compares the clients' counts with the tables. The comparison allows for interrupted transactions, which may have
    been committed."""
    unsure = int(summary.get("server_commits_uncertain", 0))
    scripts = {script["name"]: script for script in summary["scripts"]}
    placed, done, submitted, pending = one_row(
        session,
        "select count(*), sum(case when t_st_id = 'CMPT' then 1 else 0 end), "
        "sum(case when t_st_id = 'SBMT' then 1 else 0 end), sum(case when t_st_id = 'PNDG' then 1 else 0 end) "
        f"from trade where t_id >= {before.first}",
    )
    order, results = scripts["trade_order"], int(scripts["trade_result"]["completed"])
    orders = int(order["completed"]) - int(order["rolled_back_in_all"])
    checks = [
        checked("orders placed are trades", _range_text(orders, unsure), placed, orders <= placed <= orders + unsure),
        checked(
            "results are completed trades", _range_text(results, unsure), done, results <= done <= results + unsure
        ),
    ]
    figures = summary.get("figures", {})
    if "market_pending_trades" in figures and not summary.get("power_cut"):
        # The market keeps a list of all trades that are not completed, so the tables must not contain more.
        known = int(figures["market_pending_trades"]) + int(figures["market_waiting_limits"])
        open_ones = submitted + pending
        most = known + unsure
        checks.append(checked("no open trade is lost", f"at most {most}", open_ones, open_ones <= most))
    return tuple(checks)


def _range_text(count: int, more: int) -> str:
    return f"{count} to {count + more}" if more else str(count)


def _brokers(session: Session) -> dict[str, tuple[int, Decimal]]:
    rows = session.query("select b_id, b_num_trades, b_comm_total from broker")
    return {broker or "": (int(trades or 0), Decimal(total or 0)) for broker, trades, total in rows}
