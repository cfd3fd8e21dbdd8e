"""Failures under a brokerage: no partial trade is left, and the next trial starts with no trade in progress."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from brokerage_bank import NOW, Bank, opened, ticker
from emulated import needs_devices
from factories import require_installed
from own_server import FILES
from patience import eventually
from test_brokerage_trial import WORKLOAD, Trial, load
from test_tpch_load import running
from trial import Trial as Driven
from trial import plan
from user import User

from ironbench import _core
from ironbench.host import processes
from ironbench.workloads.brokerage import checks, transactions

pytestmark = [pytest.mark.live, pytest.mark.long]

SERVERS = ("postgres", "mariadb")
SMALL = ("--with", "customers=1000", "--with", "days=1", "--with", "lob=none", "--no-observe")
TRIAL = ("--clients", "4", "--warmup", "0s")
LOAD_S = 240.0
END_CONNECTION = {
    "postgres": "select pg_terminate_backend(pg_backend_pid());",
    "mariadb": "kill connection_id();",
}


@pytest.fixture(params=SERVERS, scope="module")
def bank(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bank]:
    require_installed(request.param)
    with opened(request.param, tmp_path_factory.mktemp("bank"), clients=WORKLOAD.connections(64, {})) as bank:
        yield bank


def inputs(bank: Bank, name: str) -> list[dict[str, object]]:
    """Returns sets of variables that lead to different paths of a transaction."""
    account = bank.account(tax_status=1)
    customer = bank.number(f"select ca_c_id from customer_account where ca_id = {account}")
    symbol = bank.symbol(account)
    past = {"ca_id": account, "symbol": symbol, "most": 20, "most_updates": 20, "max_ca_id": account}
    past |= {"from_time": "2005-01-03 09:00:00", "to_time": NOW}
    by_number = past | {"trades": "[200000000000001,200000000000002]"}
    order = {"ca_id": account, "symbol": symbol, "quantity": 800, "is_owner": 1, "limit_price": "25.00", "margin": 1}
    ways: dict[str, list[dict[str, object]]] = {
        "trade_status": [{"ca_id": account}],
        "market_watch": [{"mode": 1, "c_id": customer, "start_day": "2004-06-01"}],
        "security_detail": [{"symbol": symbol, "start_day": "2004-06-01", "days": 10}],
        "customer_position": [{"c_id": customer, "history": 1}],
        "trade_order": [
            order | {"trade_type": "TMS", "trade_id": 200_000_800_000_001},
            order | {"trade_type": "TLB", "trade_id": 200_000_800_000_002},
        ],
        "trade_lookup": [by_number | {"frame": 1}, *(past | {"frame": frame} for frame in (2, 3, 4))],
        "broker_volume": [{"brokers": '["nobody"]', "sector": "nothing"}],
        "trade_update": [by_number | {"frame": 1}, *(past | {"frame": frame} for frame in (2, 3))],
        "trade_result": [{"trade_id": bank.order(account, "TMS", 800), "price": "31.33"}],
        "market_feed": [{"ticker": ticker((symbol, "20.00", 100))}],
        "data_maintenance": [{"table_no": 2, "c_id": customer}, {"table_no": 12, "c_id": customer}],
    }
    return [{"now_time": NOW} | way for way in ways[name]]


def state(bank: Bank, account: int) -> dict[str, list[Any]]:
    """Returns everything that the transactions of `inputs` may change."""
    trades = f"(select t_id from trade where t_ca_id = {account} or t_id between 200000000000001 and 200000000000002)"
    kept = {
        "trade": f"t_id in {trades}",
        "trade_history": f"th_t_id in {trades}",
        "trade_request": "1 = 1",
        "settlement": f"se_t_id in {trades}",
        "cash_transaction": f"ct_t_id in {trades}",
        "holding": f"h_ca_id = {account}",
        "holding_history": f"hh_t_id in {trades}",
        "holding_summary": f"hs_ca_id = {account}",
        "customer_account": f"ca_id = {account}",
        "broker": "1 = 1",
        "last_trade": "1 = 1",
        "address": "1 = 1",
        "watch_item": f"wi_wl_id in (select wl_id from watch_list join customer_account on ca_c_id = wl_c_id "
        f"where ca_id = {account})",
    }
    return {table: sorted(map(str, bank.rows(f"select * from {table} where {which}"))) for table, which in kept.items()}


def broken_off(text: str, engine: str) -> Iterator[str]:
    """Yields the script with its connection ended after each of its statements except the last."""
    lines = text.splitlines()
    ends = [number for number, line in enumerate(lines, 1) if line.endswith((";", r"\gset")) and line[:2] != "--"]
    for end in ends:
        if lines[end - 1] not in ("commit;", "rollback;"):
            yield "\n".join((*lines[:end], END_CONNECTION[engine], *lines[end:])) + "\n"


@pytest.mark.parametrize("name", transactions.ISOLATION)
def test_a_connection_that_ends_after_any_statement_leaves_nothing_of_its_transaction(bank: Bank, name: str) -> None:
    account = bank.account(tax_status=1)
    for way in inputs(bank, name):
        given = dict.fromkeys(transactions.VARIABLES, "0") | {key: str(value) for key, value in way.items()}
        before, ended = state(bank, account), 0
        for text in broken_off(transactions.script(name, bank.engine).text, bank.engine):
            described = plan(
                bank.session.target(),
                # A statement in a branch that is not taken ends nothing, and its transaction must not remain.
                text.replace("\ncommit;", "\nrollback;"),
                variables=[list(pair) for pair in given.items()],
                clients=1,
                stop={"transactions": 1},
                on_error="stop",
            )
            ended += bool(Driven(_core.drive(described)).summary["aborted"])
            assert state(bank, account) == before, text
        assert ended >= 2, "its connection ended nowhere"
        bank.run(name, **way)
    for statement in transactions.cleanup(bank.engine):
        bank.session.query(statement)
    assert bank.broken() == []


@pytest.mark.parametrize("engine", SERVERS)
def test_a_server_of_ours_has_a_connection_for_each_of_sixty_four_clients_and_the_market(
    user: User, engine: str
) -> None:
    require_installed(engine)
    words = ("run", "brokerage", "--engine", engine, "--data", str(user.home / "brokerage"), *SMALL, "--json")
    with user.begun(*words, "--clients", "64", "--warmup", "0s", "--duration", "5s") as run:
        run.measured(within_s=LOAD_S)
    (record,) = user.records()
    assert checks_passed(record), record["checks"]


def test_sixty_four_clients_repeat_what_deadlocks_and_conflicts_end_and_nothing_fails(bank: Bank) -> None:
    trial = Trial(bank, load(clients=64, duration_s=10.0, max_tries=1000), price_period="2")
    assert not trial.summary["failed"], trial.summary["error_messages"]
    assert trial.summary["figures"]["market_given_up"] == 0
    assert trial.completed["trade_result"] > 0
    assert trial.failed() == set() and bank.broken() == []


def servers(data: Path, engine: str) -> list[int]:
    return list(processes.working_in(data / FILES[engine]))


def checks_passed(record: dict[str, Any]) -> bool:
    return bool(record["checks"]) and all(check["passed"] for check in record["checks"])


@pytest.mark.parametrize("engine", SERVERS)
def test_a_server_killed_in_a_trial_voids_it_and_leaves_no_half_trade(user: User, engine: str, place: Path) -> None:
    require_installed(engine)
    data = place / engine
    words = ("run", "brokerage", "--engine", engine, "--data", str(data), *SMALL, *TRIAL, "--json")
    with user.begun(*words, "--duration", "60s") as run:
        assert eventually(lambda: "trial 1" in run.stderr.read_text(), LOAD_S)
        time.sleep(4.0)
        os.kill(min(servers(data, engine)), signal.SIGKILL)
        told, _ = run.end()
    assert told.code == 1, told.stderr
    (record,) = user.records()
    assert record["status"] == "voided" and "SIGKILL" in record["cause"]
    assert eventually(lambda: not servers(data, engine)) and user.nothing_runs()
    with running(engine, place) as session:
        assert [check.name for check in checks.all_rules(session) if not check.passed] == []


@pytest.mark.parametrize("engine", (*SERVERS, "sqlite"))
def test_what_was_under_way_when_ironbench_was_killed_is_cancelled_by_the_next_trial(
    user: User, engine: str, place: Path
) -> None:
    require_installed(engine)
    data = place / engine
    words = ("run", "brokerage", "--engine", engine, "--data", str(data), *SMALL, *TRIAL, "--json")
    # The period is so long that limit orders wait.
    with user.begun(*words, "--with", "price_period=600", "--duration", "60s") as run:
        assert eventually(lambda: "trial 1" in run.stderr.read_text(), LOAD_S)
        time.sleep(5.0)
        run.end(signal.SIGKILL)
    assert eventually(user.nothing_runs)
    with user.begun(*words, "--with", "price_period=2", "--duration", "4s") as run:
        run.measured(within_s=LOAD_S)
    (record,) = user.records()
    assert checks_passed(record), record["checks"]
    with running(engine, place) as session:
        cancelled = "select count(*) from trade where t_st_id = 'CNCL'"
        assert int(session.query(cancelled)[0][0] or 0) > 0
        assert [check.name for check in checks.all_rules(session) if not check.passed] == []


@pytest.mark.parametrize("engine", SERVERS)
def test_a_disk_that_fills_while_the_brokerage_is_loaded_is_named_and_the_load_goes_on_afterwards(
    user: User, engine: str, small_disk: Any
) -> None:
    require_installed(engine)
    disk = small_disk(1000)
    words = ("run", "brokerage", "--engine", engine, "--data", str(disk / "d"), *SMALL, *TRIAL)
    with user.begun(*words) as run:
        run.wait_for("load brokerage")
        with (disk / "ballast").open("wb") as ballast:
            try:
                while ballast.write(b"x" * (1 << 20)):
                    ballast.flush()
            except OSError:
                pass
        told, _ = run.end(within_s=LOAD_S)
    assert told.code == 1 and "Traceback" not in told.stderr, told
    assert "No space left on device" in told.stderr or "is full" in told.stderr or "free some space" in told.stderr
    assert eventually(user.nothing_runs)
    (disk / "ballast").unlink()
    with user.begun(*words, "--duration", "3s") as run:
        again, _ = run.end(within_s=LOAD_S)
    assert again.code in (0, 3), again
    (record,) = user.records()
    assert checks_passed(record), record["checks"]


@needs_devices
@pytest.mark.xdist_group("devices")
@pytest.mark.parametrize("how", ["lose", "torn"])
@pytest.mark.parametrize("engine", SERVERS)
def test_a_power_cut_leaves_no_half_trade_and_every_confirmed_one(user: User, engine: str, how: str) -> None:
    require_installed(engine)
    places = ("--engine", engine, "--data", "ssd-sata-2011", "--with", "price_period=2", "--crash", how, "--seed", "1")
    with user.begun("run", "brokerage", *places, *SMALL, *TRIAL, "--duration", "6s", "--checkpoint", "2s") as run:
        run.measured(within_s=LOAD_S)
    (record,) = user.records()
    assert record["conditions"]["power"].startswith("cut after the measured time: ")
    assert record["metrics"]["trade_results_per_s"] > 0
    assert checks_passed(record), record["checks"]
