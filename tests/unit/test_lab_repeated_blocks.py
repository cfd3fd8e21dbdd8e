"""`lab resume --failed` repeats whole blocks: a comparison pairs only trials that were measured together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from labfactory import lab, trials

from ironbench.cli.verdict import exit_code
from ironbench.lab import schedule
from ironbench.lab.schedule import Blocks
from ironbench.model.lab import Lab, Stage
from ironbench.model.note import text_note
from ironbench.model.record import Record, Status
from ironbench.plan import screen
from ironbench.records.labs import FrozenPlan, LabDirectory
from ironbench.report import studies as labs
from ironbench.report import wording
from ironbench.study.findings import findings

THREE = {"log": ("disk", "memory", "raid")}
BROKEN = "log=memory"


def begun(plan: Lab, place: Path) -> LabDirectory:
    directory = LabDirectory(place)
    directory.begin(FrozenPlan(plan, "m1", {}, {}))
    directory.declare(plan.method.stages[0], tuple(trial for trial in plan.trials if trial.stage == 1))
    return directory


def measured(plan: Lab, level: float, attempt: int = 1, hour: int = 1) -> list[Record]:
    """Returns one record of every planned trial; all configurations are equal."""
    found = trials(plan, {setup.cell.name: level for setup in plan.setups}, spread=0.01)
    return [
        replace(one, id=f"{one.id}-{hour}", attempt=attempt, started_at=f"2026-11-21T{hour:02}:00:00") for one in found
    ]


def failing(plan: Lab, blocks: Sequence[int]) -> list[Record]:
    """Returns every trial measured once, except those of BROKEN in `blocks`, which failed twice."""
    found: list[Record] = []
    for one in measured(plan, 1000.0):
        if one.cell.name == BROKEN and one.block in blocks:
            dead = replace(one, status=Status.FAILED, metrics={}, causes=(text_note("out of memory"),))
            found += [dead, replace(dead, id=f"{dead.id}-again", attempt=2)]
        else:
            found.append(one)
    return found


def test_failed_blocks_are_repeated_whole_in_a_random_order_of_their_own(tmp_path: Path) -> None:
    plan = lab(THREE, blocks=6)
    directory = begun(plan, tmp_path)
    for one in failing(plan, [1, 4]):
        directory.store.keep(one)
    assert schedule.repeat_failed(directory) == 2
    records = directory.records()
    waiting = []
    while (trial := Blocks(directory, records).planned(records)) is not None:
        waiting.append((trial.block, trial.cell.name))
        (like,) = (one for one in measured(plan, 1000.0) if (one.block, one.cell.name) == (0, trial.cell.name))
        records = [*records, replace(like, id=f"{like.id}-{trial.block}", block=trial.block)]
    assert [block for block, _ in waiting] == [6] * 3 + [7] * 3
    assert {name for block, name in waiting if block == 6} == {setup.cell.name for setup in plan.setups}
    assert schedule.repeat_failed(directory) == 0  # replaced trials are not repeated again


def test_a_machine_that_became_faster_before_the_repeat_is_in_no_ratio(tmp_path: Path) -> None:
    plan = lab(THREE, blocks=8)
    directory = begun(plan, tmp_path)
    for one in failing(plan, range(4)):
        directory.store.keep(one)
    schedule.repeat_failed(directory)
    now = directory.lab()
    fresh = replace(now, trials=tuple(trial for trial in now.trials if trial.block >= 8))
    for one in measured(fresh, 2000.0, hour=20):
        directory.store.keep(one)
    records = directory.records()
    for one in findings(records, directory.lab(), 1, others=()):
        assert one.blocks == 8
        assert all(abs(math.log(ratio)) < 0.1 for _, ratio in one.ratios)
    study = labs.study_of(directory)
    assert study.complete and exit_code(study, records) == 0
    assert any("out of memory" in text for text in wording.texts(study.left_out))


def test_a_repeat_that_was_killed_is_finished_by_a_plain_resume(tmp_path: Path) -> None:
    plan = lab(THREE, blocks=6)
    directory = begun(plan, tmp_path)
    for one in failing(plan, [2]):
        directory.store.keep(one)
    schedule.repeat_failed(directory)
    records = directory.records()
    first = Blocks(directory, records).planned(records)
    assert first is not None and first.block == 6
    (like,) = (one for one in measured(plan, 1000.0) if (one.block, one.cell.name) == (0, first.cell.name))
    directory.store.keep(replace(like, id="new", block=6))
    again = LabDirectory(tmp_path)
    second = Blocks(again, again.records()).planned(again.records())
    assert second is not None and second.block == 6 and second.cell != first.cell


def test_a_repeated_block_keeps_its_stage_and_takes_no_number_of_a_later_one(tmp_path: Path) -> None:
    plan = lab(THREE, blocks=10)
    staged = tuple(replace(trial, stage=1 + (trial.block >= 6)) for trial in plan.trials)
    plan = replace(plan, trials=staged, method=replace(plan.method, stages=(Stage(1, 6), Stage(2, 4))))
    directory = begun(plan, tmp_path)
    first = replace(plan, trials=tuple(trial for trial in staged if trial.stage == 1))
    for one in failing(first, [0]):
        directory.store.keep(one)
    schedule.repeat_failed(directory)
    repeated = [trial for trial in directory.lab().trials if trial.block == 10]
    assert len(repeated) == 3 and {trial.stage for trial in repeated} == {1}
    assert directory.lab().method.stages == plan.method.stages


@pytest.mark.parametrize("block", [0, 7])
def test_a_screens_runs_stay_beside_their_mirror_images(block: int) -> None:
    plan = lab(dict.fromkeys("abc", ("off", "on")))
    cells = [setup.cell for setup in plan.setups]
    order = screen.ordered(cells, block, 1)
    assert sorted(cell.name for cell in order) == sorted(cell.name for cell in cells)
    for one, other in zip(order[::2], order[1::2], strict=True):
        assert all(one.levels[name] != other.levels[name] for name in "abc")
