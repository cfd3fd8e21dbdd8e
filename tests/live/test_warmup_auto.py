"""`warmup = "auto"`: a pilot of each configuration chooses the warm-up and is used for nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from lab_example import small

from ironbench.lab import freeze, loop, warmup
from ironbench.model.lab import Lab
from ironbench.model.plan import Plan
from ironbench.model.secrets import Secrets
from ironbench.model.system import Setup, Trial
from ironbench.printer import Printer
from ironbench.records import Store
from ironbench.records.labs import LabDirectory
from ironbench.study.runstudy import studies

pytestmark = pytest.mark.live


@pytest.fixture(autouse=True)
def short_pilots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes pilots too short to assess: then the planned warm-up is used, with a note."""
    monkeypatch.setattr(warmup, "PILOT_S", 0.5)


def automatic(planned: Lab) -> Lab:
    def changed(setup: Setup) -> Setup:
        load = replace(setup.cell.load, warmup_auto=True, warmup_s=0.1)
        return replace(setup, cell=replace(setup.cell, load=load))

    setups = {setup.cell.name: changed(setup) for setup in planned.setups}
    trials = tuple(replace(trial, cell=setups[trial.cell.name].cell) for trial in planned.trials)
    return replace(planned, setups=tuple(setups.values()), trials=trials)


@pytest.mark.long
def test_a_lab_measures_a_pilot_of_every_cell_once_and_says_what_it_decided(place: Path) -> None:
    directory = LabDirectory(place / "lab")
    directory.begin(freeze.freeze(automatic(small(stages=(1, 1))), {}, directory.store))
    with directory.locked():
        records = loop.conduct({}, directory, Printer())
    assert [record.purpose for record in records] == ["pilot", "pilot", "lab", "lab", "lab", "lab"]
    for record in records[2:]:
        assert record.cell.load.warmup_s == 0.1
        assert record.conditions["warm-up"] == "0.1 s, not assessed"
        assert "warm-up-not-assessed" in {warning.code for warning in record.warnings}


def test_a_run_measures_a_pilot_of_every_client_count_that_enters_no_curve(place: Path) -> None:
    planned = automatic(small(stages=(1,)))
    trials = tuple(Trial(setup.cell, 0) for setup in planned.setups)
    plan = Plan("series", planned.setups[0].system, planned.setups[0].choice, trials, 1)
    records = loop.run(plan, Secrets(), Store(place / "results"), Printer())
    assert [record.purpose for record in records] == ["pilot", "sweep", "pilot", "sweep", "confirmation"]
    (study,) = studies(records)
    (part,) = study.parts
    assert sum(len(point.trials) for point in part.curve.points) == 2
