"""Whole trials of the brokerage on real engines: customers, market and maintenance together keep its rules."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from brokerage_bank import OPTIONS, Bank, opened

from ironbench import _core, workloads
from ironbench.errors import FailureError
from ironbench.model.record import Check
from ironbench.model.system import Choice, Load
from ironbench.trial.cluster import parts
from ironbench.trial.drive.run import Tasks, compiled_plan
from ironbench.workloads.brokerage import checks, transactions

pytestmark = [pytest.mark.live, pytest.mark.long]

WORKLOAD = workloads.get("brokerage")
NOT_OF_CUSTOMERS = ("trade_result", "market_feed", "data_maintenance")


@pytest.fixture(scope="module", params=("postgres", "sqlite", "mariadb"))
def bank(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bank]:
    with opened(request.param, tmp_path_factory.mktemp("bank")) as bank:
        yield bank


class Trial:
    def __init__(self, bank: Bank, load: Load, **options: str) -> None:
        self._session, self._options = bank.session, WORKLOAD.validated(OPTIONS | options)
        session, choice = bank.session, Choice("brokerage", self._options)
        self._before = WORKLOAD.before(session, self._options)
        tasks = Tasks(
            WORKLOAD.scripts(session.engine, choice),
            WORKLOAD.variables(self._options),
            jobs=WORKLOAD.jobs(session, self._options, load),
        )
        result = self._driven(compiled_plan(session.target(), tasks, load, ()), load)
        self.histograms = result.histograms
        self.summary: dict[str, Any] = json.loads(result.summary)
        self.completed = {script["name"]: script["completed"] for script in self.summary["scripts"]}

    def _driven(self, plan: bytes, load: Load) -> _core.DriveResult:
        if not load.workers:
            return _core.drive(plan)
        with ThreadPoolExecutor(load.workers) as threads:
            found = list(threads.map(driven_at(time.time_ns() + 200_000_000), parts.cut(plan, load.workers)))
        return _core.DriveResult.merged(found)

    def checks(self) -> dict[str, Check]:
        found = WORKLOAD.check(self._session, self._options, self._before, self.summary)
        return {check.name: check for check in found}

    def failed(self) -> set[str]:
        return {name for name, check in self.checks().items() if not check.passed}


def driven_at(begin_ns: int) -> Callable[[bytes], bytes]:
    def drive(part: bytes) -> bytes:
        progress = _core.Progress()
        progress.begin_at(begin_ns)
        return _core.drive(part, progress).to_bytes()

    return drive


def load(clients: int = 2, duration_s: float | None = 6.0, max_tries: int = 50, **more: Any) -> Load:
    return Load(clients, duration_s=duration_s, warmup_s=0.0, max_tries=max_tries, seed=7, **more)


def test_customers_market_and_maintenance_keep_all_rules_and_each_is_noticed_when_it_is_broken(bank: Bank) -> None:
    trial = Trial(bank, load(), price_period="2", maintenance="0.5")
    assert not trial.summary["failed"], trial.summary["error_messages"]
    assert all(trial.completed.values()), trial.completed
    # Maintenance has no lag; a transaction that a market client had started at the end may be unfinished.
    assert trial.histograms["market_lag"].count < sum(trial.completed[name] for name in NOT_OF_CUSTOMERS)
    assert trial.failed() == set()
    done = "(select max(t_id) from trade where t_st_id = 'CMPT' and t_is_cash = 1)"
    tampered = {
        checks.BROKERS: "update broker set b_num_trades = b_num_trades + 1",
        "balance changes equal cash of trades": "update customer_account set ca_bal = ca_bal + 1",
        "settlements agree with trades": f"update settlement set se_amt = se_amt + 1 where se_t_id = {done}",
        "states of trades agree with their histories": (
            f"update trade_history set th_st_id = 'CNCL' where th_t_id = {done} and th_st_id = 'CMPT'"
        ),
    }
    for name, statement in tampered.items():
        bank.session.query("begin")
        bank.session.query(statement)
        assert name in trial.failed(), statement
        bank.session.query("rollback")
    one, other = bank.row("select min(ca_id), max(ca_id) from customer_account")
    bank.session.query("begin")
    bank.session.query(f"update customer_account set ca_bal = ca_bal + 1 where ca_id = {one}")
    bank.session.query(f"update customer_account set ca_bal = ca_bal - 1 where ca_id = {other}")
    wrong = trial.checks()["balance changes equal cash of trades"]
    assert not wrong.passed and wrong.actual == f"{wrong.expected}, of other accounts"
    bank.session.query("rollback")
    trial.summary["figures"]["market_pending_trades"] -= 1
    assert trial.failed() == {"no open trade is lost"}


def test_what_one_trial_leaves_the_next_one_cancels(bank: Bank) -> None:
    # The period is so long that many orders wait when the trial ends.
    first = Trial(bank, load(duration_s=3.0), price_period="600")
    assert first.failed() == set()
    left = bank.number("select count(*) from trade where t_st_id in ('PNDG', 'SBMT')")
    assert left > 0
    cancelled = bank.number("select count(*) from trade where t_st_id = 'CNCL'")
    second = Trial(bank, load(duration_s=3.0), price_period="2")
    assert bank.number("select count(*) from trade where t_st_id = 'CNCL'") == cancelled + left
    assert second.failed() == set() and bank.broken() == []


def test_a_trial_begins_where_the_one_before_it_ended(bank: Bank) -> None:
    Trial(bank, load(duration_s=3.0), price_period="2")
    last, latest = bank.row("select max(t_id), max(t_dts) from trade")
    trial = Trial(bank, load(duration_s=3.0), price_period="2")
    assert trial.completed["trade_result"] > 0 and trial.failed() == set()
    # Compared as text, since all engines write a time with its largest unit first.
    assert bank.row(f"select min(t_dts) from trade where t_id > {last}")[0] >= latest


def test_a_cleanup_that_was_cut_off_is_whole_or_not_there_and_the_next_one_does_what_is_left(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = transactions.cleanup(bank.engine)
    # Earlier versions sent the statements one by one, and could be killed in between.
    for sent in (1, 3):
        bank.order(bank.account(), "TLB", 100)
        for statement in statements[:sent]:
            bank.session.query(statement)
        checks.read_state(bank.session)
        assert bank.number("select count(*) from trade where t_st_id in ('PNDG', 'SBMT')") == 0
        assert bank.broken() == []
    bank.order(bank.account(), "TLB", 100)
    with monkeypatch.context() as broken:
        broken.setattr(transactions, "cleanup", lambda _: (*statements[:2], "select nothing from nowhere"))
        with pytest.raises(FailureError):
            checks.read_state(bank.session)
    assert bank.number("select count(*) from trade_request") == 1
    checks.read_state(bank.session)
    assert bank.broken() == []


def test_an_open_loop_asks_at_its_rate_and_the_market_answers_beside_it(bank: Bank) -> None:
    trial = Trial(bank, load(clients=8, duration_s=5.0, rate=80.0), price_period="2")
    asked = sum(trial.completed[name] for name in trial.completed if name not in NOT_OF_CUSTOMERS)
    # Poisson arrivals over 5 s: five standard deviations.
    assert abs(asked + trial.summary["not_started"] - 400) < 100, trial.summary
    scripts = {script["name"]: script["transactions"] for script in trial.summary["scripts"]}
    moved = sum(count for name, count in scripts.items() if name not in NOT_OF_CUSTOMERS)
    assert trial.summary["scheduled"] == moved < trial.summary["transactions"]
    assert trial.completed["trade_result"] > 0
    assert trial.histograms["response_time{script=trade_order}"].count > 0
    assert trial.failed() == set() and bank.broken() == []


def test_customers_that_think_are_paced_and_the_market_is_not(bank: Bank) -> None:
    trial = Trial(bank, load(clients=4, duration_s=5.0, think_time_s=0.05), price_period="2")
    asked = sum(trial.completed[name] for name in trial.completed if name not in NOT_OF_CUSTOMERS)
    assert 0 < asked <= 4 * (5.0 / 0.05 + 1)
    assert trial.completed["trade_result"] > 0 and trial.failed() == set()


def test_parts_of_a_trial_have_a_market_each_and_keep_the_rules_together(bank: Bank) -> None:
    if bank.engine == "sqlite":
        pytest.skip("it works in the process that calls it")
    trial = Trial(bank, load(clients=5, duration_s=6.0, workers=3), price_period="1", maintenance="1")
    assert not trial.summary["failed"], trial.summary["error_messages"]
    assert all(trial.completed.values()), trial.completed
    assert trial.summary["clients"] == 5 and trial.summary["waiting_clients"] == 6
    assert trial.completed["data_maintenance"] in (5, 6, 7), "one of them maintains the data"
    assert trial.failed() == set() and bank.broken() == []
    known = trial.summary["figures"]["market_pending_trades"] + trial.summary["figures"]["market_waiting_limits"]
    # Each trade in progress is known to one market, although a feed by one market finds all markets' orders.
    assert known == bank.number("select count(*) from trade where t_st_id in ('PNDG', 'SBMT')")


def test_results_in_the_server_and_kept_apart_by_locks_keep_the_same_rules(bank: Bank) -> None:
    if bank.engine == "sqlite":
        pytest.skip("it has one isolation level")
    trial = Trial(bank, load(clients=8), price_period="2", isolation="locks", logic="server")
    assert trial.failed() == set() and bank.broken() == []
    assert trial.completed["trade_result"] > 0
