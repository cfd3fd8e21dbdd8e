"""Several workers on one brokerage, by the command: one record, and a lost worker leaves no partial trade."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from patience import eventually
from test_brokerage_faults import LOAD_S, SMALL, checks_passed
from test_tpch_load import running
from test_workers_live import workers_of
from user import User

from ironbench.workloads.brokerage import checks

pytestmark = [pytest.mark.live, pytest.mark.long, pytest.mark.xdist_group("ray"), pytest.mark.timeout(400)]


def test_workers_trade_on_one_brokerage_and_what_a_lost_one_left_is_cancelled(place: Path) -> None:
    user, data = User(place), place / "postgres"
    words = ("run", "brokerage", "--data", str(data), *SMALL, "--with", "price_period=2", "--warmup", "0s", "--json")
    load = ("--clients", "5", "--workers", "2")
    with user.begun(*words, *load, "--duration", "60s") as run:
        assert eventually(lambda: "trial 1" in run.stderr.read_text(), LOAD_S)
        assert eventually(lambda: bool(workers_of(run)), 60.0)
        time.sleep(5.0)
        assert workers_of(run)[0].signal(signal.SIGKILL)
        told, _ = run.end(within_s=LOAD_S)
    assert told.code == 1, told.stderr
    (lost,) = user.records()
    assert lost["status"] == "voided" and "was lost" in lost["cause"]
    with user.begun(*words, *load, "--duration", "5s") as run:
        run.measured(within_s=LOAD_S)
    whole = user.records()[-1]
    assert checks_passed(whole), whole["checks"]
    assert whole["metrics"]["workers"] == 2 and whole["metrics"]["trade_results_per_s"] > 0
    with running("postgres", place) as session:
        parts = "select count(distinct t_id % 2) from trade where t_st_id = 'CMPT' and t_id > 200000000057600"
        assert session.query(parts)[0][0] == "2"
        assert [check.name for check in checks.all_rules(session) if not check.passed] == []
