"""A rate covers scheduled clients only; concurrent work of the market has no target rate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from factories import record
from test_lab_search import begun, text

from ironbench.lab.schedule import Blocks
from ironbench.model.driven import Driven
from ironbench.model.note import Note
from ironbench.model.observation import Observation
from ironbench.model.plan import record_id
from ironbench.model.record import RATE_NOT_KEPT, Record
from ironbench.model.system import Load, System
from ironbench.records import judge, measures
from ironbench.study.curve import metrics_of
from ironbench.study.rate import Rate

SUMMARY = {
    **{"elapsed_s": 10.0, "transactions": 1000, "failed": 0, "errors": {}, "cut_short": False, "aborted": False},
    **{"not_started": 110, "unfinished": 4},
}


def warned(rate: float, **more: Any) -> list[Note]:
    load = Load(rate=rate, arrivals="fixed", warmup_s=0.0)
    driven = Driven("", True, summary=SUMMARY | more)
    found = judge.warnings(System("postgres", "a"), load, driven, Observation(), None, cycles=False)
    return [one for one in found if one.code == RATE_NOT_KEPT]


def test_transactions_of_the_market_do_not_keep_the_customers_rate() -> None:
    (behind,) = warned(100.0, scheduled=890)
    assert (behind.values["rate"], behind.values["finished"]) == (100.0, 0.89)
    assert warned(100.0, scheduled=1000) == []
    assert warned(89.0, scheduled=890) == []


def test_a_summary_of_before_counts_all_transactions() -> None:
    assert warned(100.0) == [] and warned(110.0) != []


def test_only_where_somebody_waits_for_work_the_customers_have_a_throughput_of_their_own() -> None:
    def found(**more: Any) -> dict[str, float]:
        return measures.metrics(Driven("", True, summary=SUMMARY | more))

    assert found(scheduled=890)["scheduled_throughput"] == 89.0
    assert "scheduled_throughput" not in found(scheduled=1000) | found()
    of_all = record(throughput=100.0)
    assert of_all.scheduled_throughput == 100.0
    trial = replace(of_all, metrics=of_all.metrics | {"scheduled_throughput": 89.0})
    assert trial.scheduled_throughput == 89.0
    finished = [Rate(95.0, 8, metrics_of([one]), (one,)).finished for one in (of_all, trial)]
    assert [one.centre for one in finished if one] == pytest.approx([100.0, 89.0])


def test_a_share_of_the_peak_is_a_share_of_what_customers_did(tmp_path: Path) -> None:
    lab = begun(tmp_path, text("clients = 2", 'rates = ["90%"]'))
    records: list[Record] = []
    schedule = Blocks(lab, records)
    while (due := schedule.next(records)) is not None:
        cell = due.trial.cell
        setup = lab.lab().setup(cell.name)
        one = record(setup.system, cell.load.clients, 1000.0, block=due.trial.block, purpose=due.trial.purpose)
        metrics = one.metrics | {"scheduled_throughput": 890.0}
        name = record_id("s", due.trial)
        records.append(
            replace(one, id=name, cell=cell, choice=setup.choice, attempt=due.trial.attempt, metrics=metrics)
        )
        assert len(records) < 50
    peak = lab.peak()
    assert peak is not None and peak.throughput == 890.0
    assert {one.cell.load.rate for one in records if one.cell.load.rate is not None} == {801.0}
