"""Trials driven by fewer workers than requested, because machines of the cluster were lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import factories
import pytest
from test_findings import first, lab, records

from ironbench.errors import InputError
from ironbench.model.driven import Driven
from ironbench.model.note import note
from ironbench.model.record import Record
from ironbench.model.system import Load
from ironbench.model.workers import WorkerPart
from ironbench.records import judge
from ironbench.study.comparability import too_few_workers, unlike, workers_apart
from ironbench.trial.cluster import merge, worker_pool

TWO = Load(clients=8, duration_s=30.0, warmup_s=5.0, seed=1, workers=2, cluster="auto", fewer_workers=True)


def by_workers(found: Sequence[Record], short: set[tuple[str, int]]) -> list[Record]:
    """Returns records of two workers each, except those driven by a single worker."""
    made = []
    for one in found:
        drove = 1.0 if (one.cell.name, one.block) in short else 2.0
        cell = replace(one.cell, load=replace(one.cell.load, workers=2))
        made.append(replace(one, cell=cell, metrics={**one.metrics, "workers": drove}))
    return made


def test_a_block_that_unequal_numbers_of_workers_drove_is_dropped_by_name() -> None:
    plan = lab(blocks=(8,))
    found = first(plan, by_workers(records(plan), {("log=memory", 2)}))
    assert [block for block, _ in found.ratios] == [0, 1, 3, 4, 5, 6, 7]
    (apart,) = found.dropped[0].values["why"]
    assert (apart.code, {apart.values["a"], apart.values["b"]}) == ("workers-differ", {(1.0,), (2.0,)})


def test_blocks_that_equally_few_workers_drove_are_compared_and_the_finding_says_so() -> None:
    plan = lab(blocks=(7,))
    short = {(cell, block) for cell in ("log=disk", "log=memory") for block in (5, 6)}
    found = first(plan, by_workers(records(plan), short))
    assert len(found.ratios) == 7 and not found.dropped
    assert note("trials-of-fewer-workers", workers=(1.0,), requested=2, trials=4, of=14) in found.warnings


def test_runs_of_unequal_numbers_of_workers_are_unlike_unless_that_was_asked_for() -> None:
    def run(asked: int, drove: int, series: str) -> list[Record]:
        load = Load(duration_s=30.0, warmup_s=5.0, seed=1, workers=asked)
        return [factories.record(load=load, metrics={"workers": float(drove)}, series=series)]

    assert note("workers-differ", a=(2.0,), b=(1.0,)) in unlike(run(2, 2, "a"), run(2, 1, "b"))
    assert workers_apart(run(2, 2, "a"), run(1, 1, "b")) is None, "a factor, then"
    assert workers_apart(run(0, 0, "a"), run(0, 0, "b")) is None
    assert too_few_workers([*run(2, 2, "a"), *run(1, 1, "b")]) == []


def test_the_record_of_a_trial_by_fewer_workers_says_so_and_a_voided_one_says_why_it_was_voided() -> None:
    one = WorkerPart(1, "alpha", 8, 100, 0, 2.0, threads_cpu_share=0.2)
    summary = {"elapsed_s": 2.0, "transactions": 100, "failed": 0, "errors": {}, "io": "null", "aborted": False}
    found = Driven("now", alive=True, summary=summary, workers=(one,))
    assert [warning.code for warning in judge._too_few_workers(TWO, found)] == ["fewer-workers"]
    assert not judge._too_few_workers(TWO, replace(found, summary={**summary, "aborted": True}))
    assert not judge._too_few_workers(replace(TWO, workers=1), found)
    assert merge.in_words([one], TWO).startswith("1 of 2 workers on the Ray cluster auto (alpha)")


def test_fewer_workers_without_a_cluster_are_refused() -> None:
    with pytest.raises(InputError, match="without a Ray cluster"):
        worker_pool.require(replace(TWO, cluster=""))
