"""The missing trials of a lab follow from its records only."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import labfactory
import pytest
from factories import example

from ironbench.lab import warmup
from ironbench.lab.pace import Allowance, Pace
from ironbench.model.lab import Stage
from ironbench.model.plan import record_id
from ironbench.model.record import Record, Status
from ironbench.model.system import Cell, Load, Trial
from ironbench.records import progress

ON, OFF = Cell("log=on", Load()), Cell("log=off", Load())
TRIALS = tuple(Trial(cell, block, "lab") for block, cells in enumerate([(ON, OFF), (OFF, ON)]) for cell in cells)


def record(trial: Trial, status: Status = Status.OK) -> Record:
    return replace(
        example()[0],
        id=record_id("s", trial),
        cell=trial.cell,
        block=trial.block,
        purpose="lab",
        attempt=trial.attempt,
        status=status,
    )


def places(trials: tuple[Trial, ...]) -> list[tuple[str, int, int]]:
    return [(trial.cell.name, trial.block, trial.attempt) for trial in trials]


def test_without_records_everything_is_missing_in_the_planned_order() -> None:
    assert progress.missing(TRIALS, []) == TRIALS


def test_what_may_be_compared_is_not_measured_again() -> None:
    done = [record(TRIALS[0]), record(TRIALS[2], Status.SUSPECT)]
    assert places(progress.missing(TRIALS, done)) == [("log=off", 0, 1), ("log=on", 1, 1)]


def test_a_failed_trial_is_tried_once_more_at_once_and_then_kept_as_failed() -> None:
    for status in (Status.FAILED, Status.VOIDED):
        first = record(TRIALS[0], status)
        assert places(progress.missing(TRIALS, [first]))[0] == ("log=on", 0, 2)
        second = record(replace(TRIALS[0], attempt=2), status)
        assert places(progress.missing(TRIALS, [first, second]))[0] == ("log=off", 0, 1)
        assert progress.given_up([first, second]) == (first, second)


def test_a_trial_that_was_cut_short_is_repeated_and_does_not_count_as_failed() -> None:
    attempts = [record(replace(TRIALS[0], attempt=n), Status.CUT_SHORT) for n in (1, 2, 3)]
    assert places(progress.missing(TRIALS, attempts))[0] == ("log=on", 0, 4)


def test_pilots_and_other_trials_say_nothing_about_progress() -> None:
    others = [replace(record(TRIALS[0]), purpose=purpose) for purpose in ("pilot", "sweep")]
    assert progress.missing(TRIALS, others) == TRIALS


def test_ids_of_lab_trials_tell_cell_block_and_attempt_and_fit_a_file_name() -> None:
    trial = Trial(Cell("log=memory clients=8", Load()), 3, "lab", attempt=2)
    assert record_id("20260101T000000-abcd", trial) == "20260101T000000-abcd-log-memory+clients-8-b3-a2"
    odd = [Cell(f"{'x' * 300}/{n}", Load()) for n in range(2)]
    ids = {record_id("s", Trial(cell, 0, "lab")) for cell in odd}
    assert len(ids) == 2
    assert all("/" not in id and len(id) < 200 for id in ids)


def test_a_budget_holds_what_fits_at_the_pace_of_the_trials_so_far() -> None:
    now = [100.0]
    allowance = Allowance(1200.0, lambda: now[0])
    assert allowance.fits(1000), "nobody knows yet"
    allowance.passed, now[0] = 24, 700.0
    assert allowance.fits(24) and not allowance.reason
    assert not allowance.fits(30)
    assert allowance.reason.startswith(
        "the lab ends at this interim analysis, after 10 min, because the next blocks would take 12 min and exceed the "
        "budget of 20 min"
    )
    assert Allowance(None).fits(10**9)


def test_what_a_screen_took_of_the_budget_is_not_there_for_its_confirmation() -> None:
    now = [0.0]
    allowance = Allowance(1200.0, lambda: now[0], spent_s=1100.0)
    allowance.passed, now[0] = 6, 120.0
    assert not allowance.fits(6)
    assert "after 20 min" in allowance.reason


def test_waiting_for_a_quiet_machine_takes_only_what_trials_leave_of_the_budget() -> None:
    now = [100.0]
    allowance = Allowance(300.0, lambda: now[0])
    assert allowance.left_s(planned_s=290.0) == pytest.approx(40.0), "a tenth is borne"
    now[0] = 200.0
    assert allowance.left_s(planned_s=200.0) == pytest.approx(30.0)
    now[0] = 260.0
    assert allowance.left_s(planned_s=200.0) == 0.0
    assert Allowance(None).left_s(1e9) == math.inf


def test_loading_is_part_of_the_budget_and_not_of_the_pace() -> None:
    now = [0.0]
    allowance = Allowance(1200.0, lambda: now[0])
    now[0] = 600.0
    allowance.ready()
    allowance.passed, now[0] = 24, 840.0
    assert allowance.fits(48)
    assert not allowance.fits(49)


def test_loading_before_the_first_trial_says_nothing_of_the_time_of_the_others() -> None:
    plan = labfactory.lab({"log": ("disk", "memory")}, blocks=3)
    trials = [replace(trial, purpose="lab") for trial in plan.trials]
    now, done, said = [0.0], list[Record](), ""
    pace = Pace(replace(plan, trials=tuple(trials), estimate_s=240.0), lambda: now[0])
    for trial, took_s in zip(trials, (600.0, 40.0, 40.0, 40.0, 40.0, 40.0), strict=True):
        said = pace.title(trial, done)
        done.append(record(trial))
        now[0] += took_s
    assert ", 40 s left: " in said


def test_before_the_last_interim_analysis_the_remaining_time_ends_at_the_next_one() -> None:
    plan = labfactory.lab({"log": ("disk", "memory")}, blocks=6)
    stages = (Stage(1, 6), Stage(2, 6))
    trials = tuple(replace(trial, purpose="lab") for trial in plan.trials)
    pace = Pace(replace(plan, trials=trials, estimate_s=24 * 60.0, method=replace(plan.method, stages=stages)))
    assert re.match(r"trial 1 of 12, .* left until the next interim analysis: ", pace.title(trials[0], []))


def test_systems_that_take_turns_share_the_time_of_their_block() -> None:
    plan = labfactory.lab({"log": ("disk", "memory")}, blocks=3)
    trials = [replace(trial, purpose="lab") for trial in plan.trials]
    now, done, said = [0.0], list[Record](), ""
    pace = Pace(replace(plan, trials=tuple(trials), estimate_s=240.0), lambda: now[0])
    for block in range(3):
        of_block = [trial for trial in trials if trial.block == block]
        said = pace.title(of_block[0], done)
        done += map(record, of_block)
        now[0] += 80.0
    assert ", 80 s left: " in said
    assert pace.remaining_text == "80 s left"


def test_trials_before_the_blocks_count_and_the_first_guess_is_the_plans() -> None:
    plan = labfactory.lab({"log": ("disk", "memory")}, blocks=6)
    share = replace(plan.setups[0].cell, load=replace(plan.setups[0].cell.load, rate_share=0.5))
    auto = replace(plan.setups[1].cell, load=replace(plan.setups[1].cell.load, warmup_auto=True))
    setups = tuple(replace(setup, cell=cell) for setup, cell in zip(plan.setups, (share, auto), strict=True))
    trials = tuple(replace(trial, purpose="lab") for trial in plan.trials)
    now = [0.0]
    pace = Pace(replace(plan, setups=setups, trials=trials, estimate_s=16 * 60.0), lambda: now[0])

    peak = Trial(share, 0, "peak")
    assert pace.title(peak, []) == "trial 1 of 16, 16 min left: peak of log=disk"
    now[0] = 120.0
    done = [replace(record(peak), purpose="peak")]
    assert pace.title(replace(peak, block=1), done) == "trial 2 of 16, 22 min left: peak of log=disk"
    now[0] = 300.0
    done += [replace(record(replace(peak, block=n)), purpose="peak") for n in (1, 2)]
    assert pace.title(Trial(auto, 0, "pilot"), done).startswith("trial 4 of 16, ")
    done += [replace(record(Trial(auto, 0, "pilot")), purpose="pilot")]
    first = pace.title(trials[0], done)
    assert first.startswith("trial 5 of 16, ") and first.endswith(f"left: {trials[0].cell.name}, block 1")


def test_failed_pilots_are_tried_again_when_somebody_asks_unless_a_trial_has_another_warm_up() -> None:
    cell = Cell("log=on", Load(warmup_auto=True))
    pilots = [replace(record(warmup.pilot(cell, attempt), Status.FAILED), purpose="pilot") for attempt in (1, 2)]
    assert warmup.missing([cell], pilots) is None
    again = warmup.missing([cell], pilots, {one.id for one in pilots})
    assert again is not None and again.attempt == 3
    whole = replace(record(Trial(cell, 0, "lab")), cell=cell)
    assert warmup.missing([cell], [*pilots, whole], {one.id for one in pilots}) is None
