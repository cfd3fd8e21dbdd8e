"""Steps between numbers of clients: which are significant, and which trials are paired."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from labfactory import lab, said, studied, trials

from ironbench.model.record import Record
from ironbench.model.system import Setup
from ironbench.study import growth
from ironbench.study.growth import GrowthStep, growths

PLAN = lab({"clients": ("1", "2", "4", "8", "16")}, blocks=6)


def cells(records: list[Record]) -> list[tuple[Setup, list[Record]]]:
    return [(setup, [one for one in records if one.cell.name == setup.cell.name]) for setup in PLAN.setups]


def flat(seed: int) -> list[Record]:
    """Returns records whose throughput is random and does not depend on the number of clients."""
    dice = random.Random(seed)
    records = trials(PLAN, {setup.cell.name: 1000.0 for setup in PLAN.setups}, 0.0)
    return [
        replace(one, metrics={**one.metrics, "throughput": 1000 * math.exp(dice.gauss(0, 0.05))}) for one in records
    ]


@pytest.mark.parametrize("labs", [20, pytest.param(200, marks=pytest.mark.long)])
def test_a_flat_curve_is_seldom_said_to_grow_however_many_steps_it_has(
    labs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten steps at 5% each would find growth from the fewest clients in more than one in twenty of these labs."""
    fit = growths(PLAN, cells(flat(0)))[0].fit
    monkeypatch.setattr(growth, "_fit", lambda _: fit)  # steps are measured, whatever the fitted curve is
    courses = [growths(PLAN, cells(flat(seed)))[0].course for seed in range(labs)]
    grown = sum(course is not None and course.first is not None for course in courses)
    assert all(course is not None for course in courses)
    assert grown <= labs * 0.05


def test_a_step_is_sure_by_the_interval_that_is_shared_out_and_shows_its_own() -> None:
    course = growths(PLAN, cells(trials(PLAN, {s.cell.name: 1000.0 * s.cell.load.clients for s in PLAN.setups})))[
        0
    ].course
    assert course is not None and course.first is not None
    step = course.first
    assert (step.fewer, step.most) == (1, 16) and step.surely_grows
    assert step.surely_low < step.low < step.ratio < step.high < step.surely_high
    assert not GrowthStep(1.1, 1.01, 1.2, 1, 2, 6, 0.97, 1.25).surely_grows


def test_an_answer_says_why_a_step_whose_interval_shows_growth_is_not_sure() -> None:
    records = [
        replace(one, metrics={**one.metrics, "throughput": at[one.block] * one.metrics["throughput"] / 1000})
        for one, at in (
            (one, (1.0, 1.01, 1.02, 1.03, 1.04, 1.05) if one.cell.load.clients == 16 else (1.0,) * 6)
            for one in trials(PLAN, {s.cell.name: 1e6 * min(s.cell.load.clients, 8) for s in PLAN.setups}, 0.0)
        )
    ]
    study = studied(PLAN, records)
    course = study.growths[0].course
    assert course is not None and course.enough == 8 and course.beyond is not None and course.beyond.low > 1
    assert "shows no statistically clear change after correction for the number of steps: with 16" in said(study)


def test_trials_of_one_block_on_two_machines_are_no_pair() -> None:
    records = trials(PLAN, {s.cell.name: 1000.0 * s.cell.load.clients for s in PLAN.setups})
    moved = [
        replace(one, machine="m2", metrics={**one.metrics, "throughput": one.metrics["throughput"] * 9})
        if one.block == 5 and one.cell.load.clients == 16
        else one
        for one in records
    ]
    whole, split = growths(PLAN, cells(records))[0].last_step, growths(PLAN, cells(moved))[0].last_step
    assert whole is not None and split is not None
    assert (whole.blocks, split.blocks) == (6, 5)
    assert split.ratio < 3
