"""Workloads that drive themselves: their options, counting of their work, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from ironbench import engines, workloads
from ironbench.errors import FailureError, InputError
from ironbench.model.curve import Curve
from ironbench.model.driven import Driven
from ironbench.model.system import Choice, Layout, Load, System
from ironbench.records import measures
from ironbench.trial.drive.work import interruptible
from ironbench.workloads.tally import Tally

STORAGE = workloads.get("storage")
HERE = System("none", "here", layout=Layout(data="/tmp"))
LOAD = Load(duration_s=1.0, on_error="stop")


@pytest.mark.parametrize(
    ("changed", "option"),
    [
        ({"clients": 2}, "--clients"),
        ({"rate": 5.0}, "--rate"),
        ({"think_time_s": 1.0}, "--think-time"),
        ({"warmup_auto": True}, "--warmup auto"),
        ({"rate_share": 0.7}, "--rate"),
        ({"curve": Curve("clients", "ramp:1-4/9s", ((0.0, 1.0), (9.0, 4.0)))}, "--clients"),
        ({"threads": 2}, "--threads"),
        ({"cache": "cold"}, "--cache"),
        ({"protocol": "simple"}, "--protocol"),
        ({"on_error": "continue"}, "--on-error"),
    ],
)
def test_a_load_that_means_nothing_to_a_workload_is_refused_by_name(changed, option) -> None:
    STORAGE.accepts(HERE, LOAD, Choice("storage", STORAGE.validated({})))
    with pytest.raises(InputError) as caught:
        STORAGE.accepts(HERE, replace(LOAD, **changed), Choice("storage", STORAGE.validated({})))
    assert caught.value.subject == option


def test_workloads_made_of_scripts_accept_every_load() -> None:
    workloads.get("igen-oltp").accepts(System("postgres", "p"), replace(LOAD, clients=9, rate=3.0), Choice("igen-oltp"))


def test_a_tally_counts_by_part_and_by_time() -> None:
    tally = Tally("query")
    tally.done("q1", 0.0, 0.05)
    tally.done("q1", 0.0, 0.95)
    tally.done("q2", 1.0, 1.25)
    tally.failed(1.3, "57014")
    outcome = tally.outcome(1.5, metrics={"throughput": 7.0})
    assert (outcome.transactions, outcome.failed, outcome.errors) == (3, 1, {"57014": 1})
    assert set(outcome.histograms) == {"response_time", "response_time{query=q1}", "response_time{query=q2}"}
    assert outcome.histograms["response_time{query=q2}"].mean_s == pytest.approx(0.25, rel=0.001)
    assert struct.unpack("<2d", outcome.seconds["transactions"]) == (2.0, 1.0)
    assert struct.unpack("<2d", outcome.seconds["errors"]) == (0.0, 1.0)
    assert len(outcome.timeline["t_s"]) == 15 * 8


def test_what_a_workload_measures_itself_wins() -> None:
    driven = Driven(
        "",
        alive=True,
        summary={"elapsed_s": 2.0, "transactions": 4, "failed": 0, "errors": {}},
        metrics={"throughput": 7.0},
    )
    assert measures.metrics(driven)["throughput"] == 7.0


def test_the_first_interrupt_is_told_and_the_second_ends_everything() -> None:
    told = []
    before = signal.getsignal(signal.SIGINT)
    with interruptible() as interrupt:
        interrupt.tell(lambda: told.append(1))
        assert not interrupt.happened()
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupt.happened() and told == [1]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_what_is_registered_after_an_interrupt_is_told_at_once() -> None:
    told = []
    with interruptible() as interrupt:
        interrupt.now()
        interrupt.tell(lambda: told.append(1))
    assert told == [1]


def test_no_engine_keeps_nothing_and_answers_nothing(tmp_path: Path) -> None:
    engine = engines.get("none")
    system, secrets = engine.validated(System("none", "n", layout=Layout(data=str(tmp_path))), 1)
    with engines.running(system, secrets, 1) as session:
        assert session.directories() == {"data": str(tmp_path)}
        with pytest.raises(FailureError):
            session.query("select 1")


@pytest.mark.parametrize(
    "told",
    [
        {"settings": {"work_mem": "1MB"}},
        {"dsn": "host=h"},
        {"memory_bytes": 1},
        {"memory_total_bytes": 1},
        {"layout": Layout(data="/not/there")},
        {"ideal": ("log",)},
    ],
)
def test_no_engine_refuses_what_only_a_database_has(told) -> None:
    with pytest.raises(InputError):
        engines.get("none").validated(System("none", "n", **told), 1)
