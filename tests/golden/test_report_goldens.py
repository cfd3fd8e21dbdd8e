"""Rendered reports of given records are compared byte by byte. `IRONBENCH_GOLDEN=write pytest tests/golden` updates
them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from factories import DISK, MEMORY, Shelf, example, record, suspect
from labfactory import lab, studied, trials

from ironbench.model.finding import Noise
from ironbench.model.lab import Claim
from ironbench.model.note import text_note
from ironbench.model.record import Record, Status
from ironbench.model.system import Load
from ironbench.report import formats
from ironbench.report.compare_page import page as comparison
from ironbench.study.compare import compare
from ironbench.study.runstudy import studies
from ironbench.study.subjects import Subject

HERE = Path(__file__).parent


def held(name: str, text: str) -> None:
    path = HERE / name
    if os.environ.get("IRONBENCH_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def with_doubts() -> list[Record]:
    trials = example()
    trials[5] = suspect(trials[5])
    dead = record(
        DISK, 8, None, status=Status.VOIDED, block=3, causes=(text_note("check failed: order totals"),), machine="m1"
    )
    return [*trials, dead]


@pytest.mark.parametrize("format", ["text", "md"])
def test_two_systems(format: str) -> None:
    trials = with_doubts()
    held(f"two-systems.{format}", formats.get(format)(studies(trials, Shelf(trials))).decode())


def test_one_trial_of_an_open_loop() -> None:
    trials = [
        record(
            DISK,
            4,
            500.0,
            load=Load(rate=500.0, duration_s=30.0, on_error="stop"),
            metrics={"service_time_p50_s": 0.001},
        )
    ]
    held("one-trial.text", formats.get("text")(studies(trials, Shelf(trials))).decode())


def test_compare() -> None:
    trials = with_doubts()
    disk = [trial for trial in trials if trial.system == DISK]
    memory = [replace(trial, software={"ironbench": "0.2"}) for trial in trials if trial.system == MEMORY]
    found = compare(Subject("log on disk", tuple(disk)), Subject("log in memory", tuple(memory)))
    held("compare.text", formats.of_page("text")(comparison(found)).decode())


@pytest.mark.parametrize("format", ["text", "md"])
def test_a_lab(format: str) -> None:
    """The lab has a dropped block, a flagged trial, a skipped configuration, and a claim with each verdict."""
    pair = ("log=memory", "log=disk")
    claims = [
        Claim("log=memory over log=disk: 1.00 to 1.10", "ratio", "throughput", pair, 1.0, 1.1),
        Claim("order: log=memory > log=disk", "order", "throughput", pair),
        Claim("log=memory over log=disk: 1.60 to 1.62", "ratio", "throughput", pair, 1.6, 1.62),
    ]
    plan = lab({"log": ("disk", "memory", "ssd")}, blocks=8, claims=claims, skipped={"log=ssd": "/ssd is not there"})
    records = trials(plan, {"log=disk": 1800.0, "log=memory": 2900.0}, observed=True)
    for place in (4, 5):  # both sides of a block, because a block lost by only one side would prevent a verdict
        records[place] = replace(
            records[place], status=Status.FAILED, metrics={}, causes=(text_note("server died: out of memory"),)
        )
        records.append(replace(records[place], attempt=2, id=f"{records[place].id}-a2"))
    records[7] = suspect(records[7])
    noise = [Noise("m1", "igen-oltp scale=4 weight=light", "throughput", 12, 0.015, 0.021, "2026-11-20T08:00:00")]
    held(f"lab.{format}", formats.get(format)([studied(plan, records, noise)]).decode())
