"""The brokerage's tables on real engines: complete, consistent with their rules, and equal on all engines."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from factories import lacking
from test_tpch_load import Killing, running

from ironbench.errors import FailureError, InputError
from ironbench.model.session import Session
from ironbench.printer import Printer
from ironbench.trial.load import Loaded, pieces, prepare
from ironbench.workloads.brokerage import checks, tables

pytestmark = [pytest.mark.live, pytest.mark.long]

ENGINES = ("postgres", "sqlite", "mariadb")
OPTIONS = {"customers": "1000", "days": "1", "lob": "none", "references": "yes"}
TRADES = 57_600
COUNTS = {
    "trade": TRADES,
    "settlement": TRADES,
    "trade_request": 0,
    "customer": 1000,
    "customer_account": 5000,
    "broker": 10,
    "daily_market": 893_925,
    "security": 685,
    "news_item": 1000,
    "zip_code": 14_741,
}
ONE_SALE = "(select min(t_id) from trade where t_tt_id = 'TMS')"
TAMPERED = {
    "brokers have the trades and commissions of their accounts": (
        "update broker set b_comm_total = b_comm_total + 1 where b_id = 4300000003"
    ),
    "holdings add up to their summaries": (
        "update holding_summary set hs_qty = hs_qty + 100 where hs_ca_id = (select min(h_ca_id) from holding)"
    ),
    "histories of holdings add up to their trades": f"delete from holding_history where hh_t_id = {ONE_SALE}",
    "holding histories end at current holdings": (
        "insert into holding_history values (200000000000001, 200000000057600, 100, 0)"
    ),
    "states of trades agree with their histories": (
        "delete from trade_history where th_t_id = 200000000000009 and th_st_id = 'CMPT'"
    ),
    "limit orders were pending, others were not": (
        "insert into trade_history values (200000000000001, 'PNDG', '2005-01-03 09:00:00')"
    ),
    "pending trades and trade requests match": ("update trade set t_st_id = 'PNDG' where t_id = 200000000000005"),
    "settlements agree with trades": f"update settlement set se_amt = se_amt - 1 where se_t_id = {ONE_SALE}",
    "cash agrees with settlements": f"delete from cash_transaction where ct_t_id = {ONE_SALE}",
}

ALTERED = {
    "a settlement": f"update settlement set se_amt = se_amt + 1 where se_t_id = {ONE_SALE}",
    "settlements": "delete from settlement where se_t_id < 200000000000101",
    "a past price": "update daily_market set dm_close = dm_close + 1 where dm_date = '2000-01-03'",
    "an account": "update customer_account set ca_tax_st = ca_tax_st + 1 where ca_c_id = 4300000001",
}


def load(session: Session, printer: Printer | None = None, **options: str) -> Loaded:
    dataset = tables.dataset(session.engine, OPTIONS | options)
    return prepare.fill(session, dataset, 2, printer or Printer(io.StringIO(), io.StringIO()))


def broken(session: Session) -> list[str]:
    return [check.name for check in checks.all_rules(session) if not check.passed]


@pytest.mark.parametrize("engine", ENGINES)
def test_rules_hold_at_the_start_and_each_is_noticed_when_it_is_broken(engine: str, place: Path) -> None:
    with running(engine, place) as session:
        loaded = load(session)
        assert {table: int(session.query(f"select count(*) from {table}")[0][0] or 0) for table in COUNTS} == COUNTS
        assert loaded.rows == sum(
            int(session.query(f"select count(*) from {table}")[0][0] or 0) for table in tables.TABLES
        )
        dataset = tables.dataset(engine, OPTIONS)
        assert abs(dataset.rows / loaded.rows - 1) < 0.02
        assert loaded.data_bytes < dataset.bytes * 1.1
        assert session.query(dataset.intact)[0][0] in ("t", "1")
        assert broken(session) == []
        assert set(TAMPERED) == set(checks.RULES)
        if engine == "postgres":
            session.query("set session_replication_role = replica")
        elif engine == "mariadb":
            session.query("set foreign_key_checks = off")
        for name, statement in TAMPERED.items():
            session.query("begin")
            session.query(statement)
            assert name in broken(session), statement
            session.query("rollback")
        assert load(session).reused


@pytest.mark.parametrize("engine", ENGINES)
def test_tables_that_were_emptied_and_past_trades_that_were_altered_are_not_used_again(
    engine: str, place: Path
) -> None:
    with running(engine, place) as session:
        load(session)
        if engine == "postgres":
            session.query("set session_replication_role = replica")
        elif engine == "mariadb":
            session.query("set foreign_key_checks = off")
        emptied = [table for table in tables.TABLES if table not in ("trade_request", "daily_market")]
        for table in (*(emptied if engine == "postgres" else ()), *ALTERED):
            session.query("begin")
            session.query(ALTERED.get(table, f"delete from {table}"))
            with pytest.raises(InputError, match="no longer contains what ironbench loaded"):
                load(session)
            session.query("rollback")
        assert load(session).reused


def test_a_trial_checks_trades_that_were_there_before_it(place: Path) -> None:
    with running("sqlite", place) as session:
        load(session)
        first = checks.first_trade(session)
        rules = checks.rules(first, checks.sample(first))
        settled = "settlements agree with trades"
        assert session.query(rules[settled])[0][0] == "0"
        session.query(f"delete from settlement where se_t_id < {first}")
        assert int(session.query(rules[settled])[0][0] or 0) > 10_000


def test_every_engine_holds_the_same_rows(place: Path) -> None:
    sums = {}
    for engine in ENGINES:
        if lacking(engine):
            continue
        factor = 1 if engine == "sqlite" else 100
        with running(engine, place) as session:
            load(session, references="no")
            queries = (
                f"select sum(t_comm) * {factor}, sum(t_tax) * {factor} from trade",
                "select sum(t_id - 200000000000000), max(t_exec_name) from trade",
                f"select sum(se_amt) * {factor}, max(se_cash_due_date) from settlement",
                f"select sum(ca_bal) * {factor}, sum(ca_b_id) from customer_account",
                f"select sum(tx_rate) * {factor}, count(*) from taxrate",
                "select max(th_dts), min(th_dts) from trade_history where th_st_id = 'PNDG'",
                "select max(co_name), sum(length(co_desc)) from company",
            )
            found = [value or "" for query in queries for value in session.query(query)[0]]
            sums[engine] = [value.rstrip("0").rstrip(".") if "." in value else value for value in found]
    assert len(sums) > 1
    first, *others = sums.values()
    assert all(other == first for other in others), sums


def test_a_load_that_was_killed_goes_on_where_it_stopped(place: Path) -> None:
    with running("postgres", place) as session:
        with pytest.raises(FailureError, match="SIGKILL"):
            load(session, Killing())
        noted = pieces.LoadedPieces(session, "brokerage").rows()
        assert noted
        assert load(session).resumed
        assert broken(session) == []
