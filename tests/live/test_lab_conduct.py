"""A lab is measured trial by trial in its order, with a new engine process for each."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from pathlib import Path

import pytest
from lab_example import small
from labfactory import said

from ironbench import workloads
from ironbench.errors import FailureError, InputError
from ironbench.lab import freeze, loop, schedule
from ironbench.model.lab import Lab
from ironbench.model.record import Record, Status
from ironbench.model.system import Choice, Layout, Setup
from ironbench.printer import Printer
from ironbench.records.labs import LabDirectory
from ironbench.report import wording
from ironbench.study.labstudy import lab_study
from ironbench.trial.drive import preparation
from ironbench.trial.drive.drive_trial import trial_seed
from ironbench.trial.load import restore

pytestmark = pytest.mark.live


@pytest.fixture(autouse=True)
def own_snapshots(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRONBENCH_DATA", str(place / "ironbench"))


def begun(planned: Lab, path: Path) -> LabDirectory:
    directory = LabDirectory(path)
    directory.begin(freeze.freeze(planned, {}, directory.store))
    return directory


def places(records: list[Record]) -> list[tuple[str, int]]:
    return [(record.cell.name, record.block) for record in records]


@pytest.mark.parametrize(
    "engine", ["null", *(pytest.param(one, marks=pytest.mark.long) for one in ("sqlite", "postgres"))]
)
def test_every_planned_trial_is_measured_once_in_order(place: Path, engine: str) -> None:
    planned = small(engine, stages=(2, 1), data=None if engine == "null" else place / "data")
    directory = begun(planned, place / "lab")
    with directory.locked():
        records = loop.conduct({}, directory, Printer())
    assert places(records) == [(trial.cell.name, trial.block) for trial in planned.trials]
    assert [record.stage for record in records] == [1, 1, 1, 1, 2, 2]
    assert {record.status for record in records} <= {Status.OK, Status.SUSPECT}
    assert sorted(places(directory.records())) == sorted(places(records))
    with directory.locked():
        assert len(loop.conduct({}, directory, Printer())) == len(records)  # no trials are left


def test_a_clock_that_is_set_during_a_lab_is_told_and_nothing_is_lost(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock is set back an hour during the third trial. Each trial reads the offset of both clocks three times,
    finally at its end."""
    readings = itertools.count(1)
    real = preparation._offset_s
    monkeypatch.setattr(preparation, "_offset_s", lambda: real() - (3600.0 if next(readings) >= 9 else 0.0))
    directory = begun(small(stages=(2, 1)), place / "lab")
    with directory.locked():
        records = loop.conduct({}, directory, Printer())
    stepped = [place for place, record in enumerate(records) if "clock-step" in {w.code for w in record.warnings}]
    assert stepped == [2]
    assert len(records) == 6 and all(record.status.comparable for record in records)
    assert all(0.1 < record.elapsed_s < 5 for record in records)
    study = lab_study(directory.lab(), records, directory.store)
    assert study.complete
    assert "The clock was set during 1 of 6 compared trials." in said(study)


def test_both_cells_of_a_block_draw_the_same_numbers_and_other_blocks_others() -> None:
    trials = [replace(trial, purpose="lab") for trial in small().trials]
    seeds = {(trial.block, trial_seed(7, trial, len(trials))) for trial in trials}
    assert len(seeds) == 2
    assert len({seed for _, seed in seeds}) == 2


def test_more_blocks_are_a_stage_of_their_own(place: Path) -> None:
    directory = begun(small(stages=(1,)), place / "lab")
    with directory.locked():
        loop.conduct({}, directory, Printer())
        schedule.add_round(directory, 2)
        records = loop.conduct({}, directory, Printer())
    assert sorted({(record.stage, record.block) for record in records}) == [(1, 0), (2, 1), (2, 2)]
    stages = directory.lab().method.stages
    assert [(stage.blocks, stage.added) for stage in stages] == [(1, False), (2, True)]


@pytest.mark.long
def test_garbage_of_the_trial_before_is_taken_away_where_a_block_shares_its_data(place: Path) -> None:
    planned = small("postgres", stages=(1,), data=place / "data")
    writing = Choice("simple-update", workloads.get("simple-update").validated({}))
    setups = tuple(replace(setup, choice=writing) for setup in planned.setups)
    planned = replace(planned, setups=setups, method=replace(planned.method, restore="block"))
    directory = begun(planned, place / "lab")
    with directory.locked():
        first, second = loop.conduct({}, directory, Printer())
    assert "garbage" not in first.conditions
    assert second.conditions["restored"] == "once for this block"
    assert second.conditions["garbage"].startswith("vacuumed pgbench_accounts")


@pytest.mark.long
def test_data_that_are_only_read_are_copied_once_until_a_trial_has_written(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "EXPENSIVE", -1.0)  # a file system that shares blocks copies without cost
    reading = small("sqlite", stages=(2,), data=place / "data")
    writing = Choice("simple-update", workloads.get("simple-update").validated({}))
    first, second = reading.setups
    mixed = replace(reading, setups=(first, replace(second, choice=writing)))
    copies = []
    for number, planned in enumerate((reading, mixed)):
        directory = begun(planned, place / f"lab{number}")
        with directory.locked():
            records = loop.conduct({}, directory, Printer())
        assert all(record.status.comparable for record in records)
        copies.append([record.conditions["restored"] != "once for this lab" for record in records])
    assert copies[0] == [True, False, False, False]
    after = [True, *(trial.cell.name == second.cell.name for trial in mixed.trials[:-1])]
    own = [trial.cell.name == second.cell.name for trial in mixed.trials]
    assert copies[1] == [one or other for one, other in zip(after, own, strict=True)]


def spoilt(setup: Setup, place: Path) -> Setup:
    """Returns the setup with a data directory that cannot be created, because its parent became a file after the plan
    was made."""
    (place / "file").write_text("no directory")
    return replace(setup, system=replace(setup.system, layout=Layout(str(place / "file" / "data"))))


def test_a_trial_that_never_runs_is_tried_twice_and_kept_as_failed(place: Path) -> None:
    planned = small("sqlite", stages=(2,), data=place / "data")
    bad, good = planned.setups
    directory = begun(replace(planned, setups=(spoilt(bad, place), good)), place / "lab")
    with directory.locked():
        records = loop.conduct({}, directory, Printer())
    failed = [record for record in records if record.cell.name == bad.cell.name]
    assert [(record.block, record.attempt, record.status) for record in failed] == [
        (block, attempt, Status.FAILED) for block in (0, 1) for attempt in (1, 2)
    ]
    assert "not a directory" in wording.cause(failed[0]).lower()
    assert all(record.status.comparable for record in records if record.cell.name == good.cell.name)


def test_a_lab_in_which_nothing_works_stops_after_a_block(place: Path) -> None:
    planned = small("sqlite", stages=(6,), data=place / "data")
    bad = tuple(spoilt(setup, place) for setup in planned.setups)
    directory = begun(replace(planned, setups=bad), place / "lab")
    with directory.locked(), pytest.raises(FailureError, match="not a directory"):
        loop.conduct({}, directory, Printer())
    assert len(directory.records()) == 4


def test_a_directory_has_one_worker(place: Path) -> None:
    directory = LabDirectory(place / "lab")
    with (
        directory.locked(),
        pytest.raises(InputError, match=rf"is using this directory \({os.getpid()}\)"),
        directory.locked(),
    ):
        pass
    with directory.locked():
        pass


def test_what_changed_since_a_lab_began_is_named(place: Path) -> None:
    planned = small()
    directory = begun(planned, place / "lab")
    frozen = directory.frozen()
    assert freeze.changes(frozen, {}, directory, planned.source) == []
    assert freeze.changes(frozen, {}, directory, "other") == ["the text of the lab file"]
    older = replace(frozen, engines={"clients=1": {"version": "0"}, "clients=2": frozen.engines["clients=2"]})
    (changed,) = freeze.changes(older, {}, directory, planned.source)
    assert changed.startswith("engine of clients=1.version: was 0, is ")
    with pytest.raises(InputError, match="version: was 0"):
        freeze.refuse_changed([changed], directory)
