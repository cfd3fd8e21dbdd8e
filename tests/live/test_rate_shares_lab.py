"""Rates as percentages of the baseline's peak: measured first, stored, and the same after a resume."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest
from lab_example import small

from ironbench.lab import declare, freeze, loop
from ironbench.model.lab import Lab
from ironbench.model.system import Setup
from ironbench.plan import rates
from ironbench.printer import Printer
from ironbench.records.labs import LabDirectory
from ironbench.study.labstudy import lab_study

pytestmark = pytest.mark.live


def shared(planned: Lab) -> Lab:
    def changed(setup: Setup) -> Setup:
        return replace(setup, cell=replace(setup.cell, load=replace(setup.cell.load, rate_share=0.5)))

    setups = {setup.cell.name: changed(setup) for setup in planned.setups}
    trials = tuple(replace(trial, cell=setups[trial.cell.name].cell) for trial in planned.trials)
    return replace(planned, setups=tuple(setups.values()), trials=trials)


def test_the_peak_is_measured_before_the_blocks_and_kept(place: Path) -> None:
    directory = LabDirectory(place / "lab")
    directory.begin(freeze.freeze(shared(small(stages=(1, 1))), {}, directory.store))
    with directory.locked():
        records = loop.conduct({}, directory, Printer())
    assert [record.purpose for record in records] == ["peak"] * 3 + ["lab"] * 4
    peak = directory.peak()
    assert peak is not None and peak.throughput == median(record.metrics["throughput"] for record in records[:3])
    assert all(record.cell.name == "clients=1" and record.cell.load.rate is None for record in records[:3])
    for record in records[3:]:
        rate = record.cell.load.rate
        assert rate is not None and 0.49 * peak.throughput < rate <= 0.5 * peak.throughput
        assert "closed-loop trials of clients=1" in record.conditions["rate"]

    (directory.path / "trials" / records[-1].id).rename(place / "lost")
    with directory.locked():
        again = LabDirectory(place / "lab")
        resumed = loop.conduct({}, again, Printer())
    assert len(resumed) == len(records)
    assert resumed[-1].cell.load == records[-1].cell.load


def test_the_peak_leaves_no_used_data_to_the_first_block(place: Path) -> None:
    planned = shared(small("sqlite", stages=(1,), data=place / "data"))
    planned = replace(planned, method=replace(planned.method, restore="block"))
    directory = LabDirectory(place / "lab")
    directory.begin(freeze.freeze(planned, {}, directory.store))
    with directory.locked():
        records = loop.conduct({}, directory, Printer())
    assert [record.purpose for record in records] == ["peak"] * 3 + ["lab"] * 2
    restored = [record.conditions["restored"] for record in records]
    assert [words == "once for this block" for words in restored] == [False] * 4 + [True]


@pytest.mark.long
def test_rated_cells_run_beside_the_others_in_an_open_loop(place: Path) -> None:
    file = place / "speed.toml"
    file.write_text(RATED)
    planned, secrets = declare.lab(file)
    directory = LabDirectory(place / "lab")
    directory.begin(freeze.freeze(planned, secrets, directory.store))
    with directory.locked():
        records = loop.conduct(secrets, directory, Printer())
    assert len(records) == 3 + 2 * (2 + 6)
    peak = directory.peak()
    assert peak is not None
    rated = [record for record in records if record.cell.load.rate is not None]
    assert {record.cell.load.rate for record in rated} == set(rates.at_shares(peak.throughput))
    study = lab_study(directory.lab(), [one for one in records if one.purpose == "lab"], directory.store)
    assert [one.share for one in study.same_loads] == [0.5, 0.7, 0.9]
    assert study.complete
    assert [finding.cell for finding in study.findings] == ["speed=slow"]


RATED = """
question = "Slower?"
[system]
engine = "null"
[workload]
name = "select-only"
[load]
duration = "1s"
warmup = "0s"
[vary.speed]
fast = { set = { service = "200us" } }
slow = { set = { service = "400us" } }
[measure]
repeats = 2
quiet = "0s"
"""
