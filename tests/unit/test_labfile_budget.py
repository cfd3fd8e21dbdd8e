"""A budget is converted to the number of blocks and the trial length that detect the smallest difference."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import labfactory
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ironbench.errors import InputError
from ironbench.lab.size import detector, of_length, of_machine, resolution
from ironbench.model.finding import Noise
from ironbench.model.lab import Stage
from ironbench.plan import budget
from ironbench.plan.budget import ASSUMED, LabTimes, PairVariation
from ironbench.records.work import work_name

TWO = LabTimes(own_s=(None, None), around_s=(8.0, 8.0), once_s=10.0)
LENGTHS = budget.lengths(None, [None])


def resolved(minutes: float, spread: PairVariation = ASSUMED) -> budget.Size:
    return budget.sized(TWO, LENGTHS, minutes * 60, 1, spread, detector(1), "x.toml")


def test_what_is_resolved_is_the_minimum_detectable_effect_of_a_paired_t_interval() -> None:
    """(t(0.975, n-1) + t(0.9, n-1)) s/√n is the usual approximation (Cohen 1988); 2.2622 and 1.3830 for 9 degrees of
    freedom."""
    spread = PairVariation(0.05, 30.0, 100_000, "given")
    found = detector(1)(spread, 30.0, (Stage(1, 10),))
    assert math.log1p(found) == pytest.approx((2.2622 + 1.3830) * 0.05 / math.sqrt(10), rel=0.03)


def test_more_comparisons_resolve_less() -> None:
    assert detector(10)(ASSUMED, 30.0, (Stage(1, 10),)) > detector(1)(ASSUMED, 30.0, (Stage(1, 10),))


def test_half_of_the_variance_shrinks_with_longer_trials() -> None:
    spread = PairVariation(0.04, 30.0, 20, "given")
    assert spread.at(30.0) == pytest.approx(0.04)
    assert spread.at(60.0) == pytest.approx(0.04 * math.sqrt(0.75))
    assert spread.at(1e9) == pytest.approx(0.04 * math.sqrt(0.5), rel=1e-6)


@settings(max_examples=30)
@given(st.floats(5.0, 600.0))
def test_a_plan_keeps_its_budget_and_has_six_blocks(minutes: float) -> None:
    found = resolved(minutes)
    assert found.elapsed_s <= minutes * 60
    assert sum(stage.blocks for stage in found.stages) >= 6
    assert found.trial_s in LENGTHS


def test_a_larger_budget_resolves_more() -> None:
    found = [resolved(minutes).detectable for minutes in (5, 15, 60, 240)]
    assert found == sorted(found, reverse=True)


def test_what_a_smaller_difference_needs_is_what_resolves_it() -> None:
    size = resolved(15)
    needed = budget.needed(size.trial_s, 0.03, 1, ASSUMED, detector(1))
    assert needed is not None
    needed_s = TWO.lab_s(size.trial_s, needed)
    assert needed_s > 900
    assert resolved(needed_s / 60).detectable <= 0.03 * 1.001


def test_a_budget_for_less_than_six_blocks_is_refused_with_what_is_needed() -> None:
    with pytest.raises(InputError) as caught:
        resolved(1)
    assert "2 configurations in 6 blocks with trials of 5 s take 2 min 50 s" in caught.value.cause
    assert "use a budget of 2 min 50 s" in caught.value.hint
    assert resolved(170 / 60).elapsed_s <= 170


def refused(cells: LabTimes, minutes: float, checkpoint_s: float | None = None, least_s: float = 0.0) -> str:
    """Returns the hint for a budget that is too small."""
    lengths = budget.lengths(None, [checkpoint_s])
    with pytest.raises(InputError) as caught:
        budget.sized(
            cells,
            lengths,
            minutes * 60,
            1,
            ASSUMED,
            detector(1),
            "x.toml",
            checkpoint_s=checkpoint_s or 0.0,
            least_s=least_s,
        )
    return caught.value.hint


@pytest.mark.parametrize(
    ("minutes", "checkpoint_s", "hint"),
    [
        (2.5, None, 'use a budget of 2 min 50 s, or set load.duration = "3s"'),
        (2.5, 2.0, 'use a budget of 2 min 50 s, or set load.duration = "3s" and load.checkpoint = "1s"'),
        (4.0, 20.0, 'use a budget of 12 min, or set load.checkpoint = "4s"'),
        (2.2, 10.0, "use a budget of 6 min 50 s"),
        (1.0, None, "use a budget of 2 min 50 s"),
    ],
)
def test_a_budget_of_two_values_is_refused_with_settings_that_fit(
    minutes: float, checkpoint_s: float | None, hint: str
) -> None:
    """Fewer values than two compare nothing. The lab fits into its budget with the settings of the hint."""
    found = refused(TWO, minutes, checkpoint_s)
    assert found == f"a verdict needs 6 blocks: {hint}"
    settings = dict(re.findall(r'(load\.\w+) = "(\d+)s"', found))
    if settings:
        duration = float(settings["load.duration"]) if "load.duration" in settings else None
        interval = float(settings["load.checkpoint"]) if "load.checkpoint" in settings else checkpoint_s
        lengths = budget.lengths(duration, [interval])
        sized = budget.sized(TWO, lengths, minutes * 60, 1, ASSUMED, detector(1), "x.toml")
        assert sum(stage.blocks for stage in sized.stages) >= 6


def test_a_budget_that_is_too_small_is_refused_with_fewer_values_only_if_there_are_more_than_two() -> None:
    three = LabTimes(own_s=(None,) * 3, around_s=(8.0,) * 3, once_s=10.0)
    assert refused(three, 1).endswith(", or vary fewer values")
    assert "load" not in refused(LabTimes(own_s=(20.0, 20.0), around_s=(8.0, 8.0), once_s=10.0), 2)
    assert "load" not in refused(TWO, 2.5, least_s=5.0)


def test_a_clear_difference_may_end_a_long_lab_early() -> None:
    assert [stage.blocks for stage in budget.staged(12, None)] == [6, 6]
    assert [stage.blocks for stage in budget.staged(11, None)] == [11]
    assert len(budget.staged(100, None)) == 3
    assert len(budget.staged(100, 1)) == 1


def test_trials_are_never_longer_than_declared_and_hold_two_checkpoints() -> None:
    assert budget.lengths(20.0, [None]) == (5.0, 7.5, 10.0, 15.0, 20.0)
    assert budget.lengths(3.0, [None]) == (3.0,)
    assert min(budget.lengths(None, [10.0])) == 25.0
    assert budget.lengths(20.0, [10.0]) == (25.0,)


def test_the_machines_own_noise_is_used_where_it_was_measured() -> None:
    lab = labfactory.lab({"log": ("disk", "memory")})
    work = work_name(lab.setups[0].choice)
    quiet = Noise("m", "select-only", "throughput", 10, 0.01, 0.01, "2026-11-21T01:00:00")
    same = Noise("m", work, "throughput", 12, 0.03, 0.02, "2026-11-21T01:00:00", 60.0)
    assert of_machine(lab.setups, "throughput", [], "m") == ASSUMED
    assert of_machine(lab.setups, "throughput", [quiet, same], "another") == ASSUMED
    found = of_machine(lab.setups, "throughput", [quiet, same], "m")
    assert (found.share, found.trial_s, found.seen) == (0.03, 60.0, 12)
    assert "12 blocks" in found.source and "2026-11-21" in found.source
    assert of_machine(lab.setups, "throughput", [quiet], "m").share == 0.01


def test_a_plan_shows_the_spread_that_its_resolution_follows_from() -> None:
    setups = labfactory.lab({"log": ("disk", "memory")}).setups
    short, long = (resolution([of_length(one, s) for one in setups], (Stage(1, 6),), ASSUMED, 1, 1) for s in (2, 30))
    assert short.varies > 2 * long.varies and long.varies == pytest.approx(ASSUMED.share, rel=0.02)
    freedom_5 = (2.5706 + 1.4759) / math.sqrt(6)  # t(0.975) + t(0.9)
    for one in (short, long):
        assert math.log1p(one.detectable or 0) == pytest.approx(freedom_5 * one.varies, rel=0.05)


def test_work_that_ends_by_itself_is_as_noisy_as_it_was_measured() -> None:
    plan = labfactory.lab({"log": ("disk", "memory")})
    setups = [
        replace(one, cell=replace(one.cell, load=replace(one.cell.load, duration_s=None, transactions=10)))
        for one in plan.setups
    ]
    found = resolution(setups, (Stage(1, 10),), PairVariation(0.02, 600.0, 10, "given"), 1, 1)
    assert found.trial_s == 600.0
    assert found.detectable == pytest.approx(detector(1)(PairVariation(0.02, 30.0, 10, "given"), 30.0, (Stage(1, 10),)))
