"""Trials of the TPC-C-derived workload on real engines: what clients counted agrees with the tables, all consistency
conditions are kept, and procedures do what client SQL does."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from test_tpch_load import running

from ironbench import _core
from ironbench.errors import InputError
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.model.system import Choice, Load
from ironbench.printer import Printer
from ironbench.trial.cluster import parts
from ironbench.trial.drive.run import Tasks, compiled_plan
from ironbench.trial.load import prepare
from ironbench.workloads.tpcc import WORKLOAD, tables

pytestmark = pytest.mark.live


def loaded(engine: str, place: Path, clients: int = 4) -> Iterator[Session]:
    with running(engine, place, clients) as session:
        dataset = tables.dataset(engine, WORKLOAD.validated({}))
        prepare.fill(session, dataset, 2, Printer(io.StringIO(), io.StringIO()))
        yield session


@pytest.fixture(scope="module", params=("postgres", "sqlite", pytest.param("mariadb", marks=pytest.mark.long)))
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    yield from loaded(request.param, tmp_path_factory.mktemp("tpcc"))


class Trial:
    def __init__(self, session: Session, load: Load, **options: str) -> None:
        self._session, self._options = session, WORKLOAD.validated(options)
        choice = Choice("tpcc", self._options)
        WORKLOAD.set_up(session, self._options, True)
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

    def failed(self) -> dict[str, Check]:
        return {name: check for name, check in self.checks().items() if not check.passed}


def driven_at(begin_ns: int) -> Callable[[bytes], bytes]:
    def drive(part: bytes) -> bytes:
        progress = _core.Progress()
        progress.begin_at(begin_ns)
        return _core.drive(part, progress).to_bytes()

    return drive


def load(clients: int = 4, duration_s: float | None = 3.0, **more: Any) -> Load:
    return Load(clients, duration_s=duration_s, warmup_s=0.0, max_tries=100, seed=7, **more)


def test_terminals_keep_all_conditions_and_a_violated_one_is_noticed(session: Session) -> None:
    trial = Trial(session, load())
    assert not trial.summary["failed"], trial.summary["error_messages"]
    assert all(trial.completed.values()), trial.completed
    assert trial.failed() == {}
    session.query("begin")
    session.query("update district set d_ytd = d_ytd + 1 where d_id = 1")
    assert {name.split(":")[0] for name in trial.failed()} == {"condition 1", "condition 9"}
    session.query("rollback")
    trial.summary["scripts"][0]["completed"] += 1
    assert "orders placed = New-Orders committed" in trial.failed()


def test_deferred_deliveries_are_carried_out_by_other_clients(session: Session) -> None:
    trial = Trial(session, load(), delivery="deferred")
    assert not trial.summary["failed"], trial.summary["error_messages"]
    assert (trial.summary["clients"], trial.summary["waiting_clients"]) == (4, 1)
    requested, carried_out = trial.completed["delivery-request"], trial.completed["delivery"]
    left = trial.summary["figures"]["deliveries_left"]
    # One may be in progress at the end.
    assert requested > 0 and requested - 1 <= carried_out + left <= requested, trial.completed
    assert trial.histograms["delivery_lag"].count >= carried_out - 1
    assert trial.failed() == {}


@pytest.mark.long
def test_parts_of_a_trial_keep_the_conditions_together(session: Session) -> None:
    if session.engine == "sqlite":
        pytest.skip("it works in the process that calls it")
    trial = Trial(session, load(clients=5, workers=2), delivery="deferred")
    assert not trial.summary["failed"], trial.summary["error_messages"]
    assert (trial.summary["clients"], trial.summary["waiting_clients"]) == (5, 2)
    assert all(trial.completed.values()) and trial.failed() == {}


def test_an_unknown_item_rolls_its_order_back(session: Session) -> None:
    trial = Trial(session, load(clients=1, duration_s=None, transactions=1150))
    assert not trial.summary["failed"], trial.summary["error_messages"]
    assert list(trial.completed.values()) == [500, 500, 50, 50, 50]
    orders = trial.summary["scripts"][0]
    # One in a hundred: a binomial distribution.
    assert 1 <= orders["rolled_back"] <= 25 and trial.failed() == {}
    assert [one["rolled_back"] for one in trial.summary["scripts"][1:]] == [0, 0, 0, 0]


CHANGED = (
    "select w_id, w_ytd from warehouse",
    "select d_id, d_ytd, d_next_o_id from district order by d_id",
    "select c_d_id, c_id, c_balance, c_ytd_payment, c_payment_cnt, c_delivery_cnt, c_data from customer "
    "where c_payment_cnt > 1 or c_delivery_cnt > 0 order by c_d_id, c_id",
    "select h_c_d_id, h_c_id, h_d_id, h_amount, h_data from history where h_amount <> 10 "
    "order by h_c_d_id, h_c_id, h_amount",
    "select no_d_id, no_o_id from new_order order by no_d_id, no_o_id",
    "select o_d_id, o_id, o_c_id, o_carrier_id, o_ol_cnt, o_all_local from orders where o_id > 2100 "
    "order by o_d_id, o_id",
    "select ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info, "
    "case when ol_delivery_d is null then 0 else 1 end from order_line where ol_o_id > 2100 "
    "order by ol_d_id, ol_o_id, ol_number",
    "select s_i_id, s_quantity, s_ytd, s_order_cnt, s_remote_cnt from stock where s_order_cnt > 0 order by s_i_id",
)
"""Everything that transactions change, except for times."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("engine", "other"), [("postgres", "procedures"), ("mariadb", "procedures"), ("postgres", "batch")]
)
def test_procedures_and_batches_leave_the_rows_that_client_sql_leaves(engine: str, other: str, tmp_path: Path) -> None:
    left = []
    for value in ("false", "true"):
        for session in loaded(engine, tmp_path / value):
            trial = Trial(session, load(clients=1, duration_s=None, transactions=1150), **{other: value})
            assert not trial.summary["failed"], trial.summary["error_messages"]
            assert trial.failed() == {}
            left.append([session.query(sql) for sql in CHANGED])
    assert all(left[0])
    for sql, *rows in zip(CHANGED, *left, strict=True):
        assert rows[0] == rows[1], sql


@pytest.mark.long
def test_clients_of_procedures_keep_all_conditions_together(session: Session) -> None:
    if session.engine == "sqlite":
        pytest.skip("it has no procedures")
    trial = Trial(session, load(), procedures="true")
    assert not trial.summary["failed"], trial.summary["error_messages"]
    assert all(trial.completed.values()) and trial.failed() == {}


def test_a_role_that_may_not_create_procedures_is_told(session: Session) -> None:
    if session.engine != "postgres":
        pytest.skip("the rule does not depend on the engine")
    session.query("create role poor")
    session.query("set role poor")
    try:
        with pytest.raises(InputError) as refused:
            WORKLOAD.set_up(session, WORKLOAD.validated({"procedures": "true"}), True)
    finally:
        session.query("reset role")
        session.query("drop role poor")
    assert refused.value.subject == "--with procedures=true"
    assert (
        "permission denied" in refused.value.cause
        and "grant the role the privilege to create procedures" in refused.value.hint
    )
