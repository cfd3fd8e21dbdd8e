"""A stopping rule with a fixed error rate, and the minimum detectable effect of a lab."""

from __future__ import annotations

import math
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ironbench.model.lab import Method, Stage
from ironbench.model.note import note
from ironbench.stats.multiplicity import levels
from ironbench.stats.power import blocks_needed, detectable, effect, likely_spread, power
from ironbench.study.interim import analysis_after, should_stop
from ironbench.study.verdict import advice, judged, of_blocks

normal = NormalDist()
growing = st.lists(st.integers(1, 12), min_size=1, max_size=4).map(
    lambda stages: tuple(sum(stages[: place + 1]) for place in range(len(stages)))
)


def test_a_single_analysis_spends_everything() -> None:
    assert levels(0.05, (6,), 2) == pytest.approx((0.05,))
    assert levels(0.05, (6,), 1) == pytest.approx((0.05,))


def test_five_equally_spaced_analyses_have_the_published_boundaries() -> None:
    # Lan and DeMets (1983), table 1, the linear spending function: one-sided 0.025, five equal analyses.
    bounds = [normal.inv_cdf(1 - level / 2) for level in levels(0.05, (10, 20, 30, 40, 50), 2)]
    assert bounds == pytest.approx([2.58, 2.49, 2.41, 2.34, 2.28], abs=0.006)


def test_an_analysis_before_the_sixth_block_spends_nothing() -> None:
    assert levels(0.05, (3, 6, 12), 2) == pytest.approx((0.0, *levels(0.05, (6, 12), 2)), abs=1e-6)


@settings(max_examples=15)
@given(growing, st.sampled_from([1, 2]))
def test_no_level_is_above_alpha_or_negative(planned: tuple[int, ...], sides: int) -> None:
    found = levels(0.05, planned, sides)
    assert all(0 <= level <= 0.05 + 1e-9 for level in found)
    assert (found[-1] > 0) == (planned[-1] >= 6)


@pytest.mark.parametrize("planned", [(6, 12), (6, 10), (6, 12, 18)])
@pytest.mark.parametrize("sides", [1, 2])
def test_all_analyses_together_have_the_error_rate_alpha(planned: tuple[int, ...], sides: int) -> None:
    dice = np.random.default_rng(5)
    sums = np.cumsum(dice.standard_normal((200_000, planned[-1])), axis=1)
    crossed = np.zeros(len(sums), dtype=bool)
    for blocks, level in zip(planned, levels(0.05, planned, sides), strict=True):
        z = sums[:, blocks - 1] / math.sqrt(blocks)
        crossed |= (np.abs(z) if sides == 2 else z) > normal.inv_cdf(1 - level / sides)
    assert crossed.mean() == pytest.approx(0.05, abs=0.002)


def test_an_added_stage_is_a_round_of_its_own() -> None:
    method = Method((Stage(1, 6), Stage(2, 4), Stage(3, 8, added=True)), seed=1)
    first, second, third = (analysis_after(method, stage) for stage in (1, 2, 3))
    assert (first.planned, first.number, first.analyses, first.first_stage) == ((6, 10), 1, 2, 1)
    assert (second.planned, second.number, second.last_stage, second.round) == ((6, 10), 2, 2, 1)
    assert (third.planned, third.number, third.analyses, third.first_stage, third.round) == ((8,), 1, 1, 3, 2)
    assert third.level(0.05, 2) == pytest.approx(0.05)


def test_an_analysis_after_the_last_stage_is_the_last() -> None:
    assert analysis_after(Method((Stage(1, 6),), seed=1), 4).number == 1


def test_it_stops_when_everything_declared_is_told_or_nothing_is_left() -> None:
    method = Method((Stage(1, 6), Stage(2, 6)), seed=1)
    clear = judged(of_blocks("throughput", "A", "B", [(b, 200.0 + b, 100.0) for b in range(6)]), method)
    wide = [(b, 100.0 + 30 * (-1) ** b, 100.0) for b in range(6)]
    open_one = judged(of_blocks("throughput", "C", "B", wide), method)
    beside = judged(of_blocks("throughput", "C", "B", [(0, 1.0, 1.0)], decides=False), method)
    assert should_stop([clear, beside], 1, 2)
    assert not should_stop([clear, open_one], 1, 2)
    assert not should_stop([], 1, 2)
    assert should_stop([open_one], 2, 2)


@pytest.mark.parametrize(
    ("blocks", "size", "level", "chance"),
    # G*Power 3.1 manual and program, paired t test, two-sided; Cohen (1988), section 2.3, rounds them to .81 and .82.
    [(34, 0.5, 0.05, 0.8077775), (15, 0.8, 0.05, 0.8213105)],
)
def test_power_is_that_of_the_published_tables(blocks: int, size: float, level: float, chance: float) -> None:
    assert power(size, blocks, level) == pytest.approx(chance, abs=1e-6)


def test_the_effect_found_with_90_percent_power_has_90_percent_power() -> None:
    for blocks in (6, 10, 20, 50):
        assert power(effect(blocks, 0.05), blocks, 0.05) == pytest.approx(0.9, abs=1e-6)


def test_a_guessed_spread_is_taken_larger_the_fewer_blocks_it_was_seen_in() -> None:
    # Browne (1995): sqrt(5 / chi2(0.1, 5)) with chi2(0.1, 5) = 1.61031 (A & S, table 26.8).
    assert likely_spread(1.0, 6) == pytest.approx(math.sqrt(5 / 1.61031), abs=1e-5)
    assert likely_spread(1.0, 6) > likely_spread(1.0, 20) > 1


def test_more_blocks_and_less_spread_find_smaller_differences() -> None:
    found = [detectable(0.05, blocks, 0.05) or math.inf for blocks in (6, 10, 20, 50)]
    assert found == sorted(found, reverse=True)
    assert (detectable(0.02, 10, 0.05) or 0) < (detectable(0.05, 10, 0.05) or 0) < (detectable(0.05, 10, 0.01) or 0)
    assert detectable(0.05, 1, 0.05) is None
    assert detectable(0.05, 6, 0.0) is None


def test_the_blocks_advised_are_enough_and_one_fewer_is_not() -> None:
    wanted = blocks_needed(0.05, 0.05, 10, 0.05, 0.05, 6)
    assert wanted is not None
    size = math.log(1.05) / likely_spread(0.05, 10)
    assert power(size, wanted, 0.05) >= 0.9
    assert blocks_needed(0.05, 0.001, 10, 0.05, 0.05, 6) == 6
    assert blocks_needed(0.05, 0.0, 10, 0.05, 0.05, 6) == 6
    assert blocks_needed(0.001, 2.0, 10, 0.05, 0.05, 6) is None


def test_the_planned_blocks_are_advised_only_if_the_last_analysis_can_detect_the_margin() -> None:
    place = analysis_after(Method((Stage(1, 6), Stage(2, 6), Stage(3, 6)), seed=1), 1)
    last = levels(0.05, place.planned)[-1]
    advised, not_advised = 0, 0
    for spread in np.arange(0.02, 0.045, 0.0005):
        found: Any = SimpleNamespace(blocks=6, spread=float(spread))
        if advice(found, "higher", 0.05, place) == note("planned-blocks", blocks=18, margin=0.05):
            advised += 1
            assert (detectable(found.spread, 18, last, seen=6) or 1.0) <= 0.05
        else:
            whole = blocks_needed(0.05, found.spread, 6, 0.05, 0.05, 6)
            not_advised += whole is not None and whole <= 18
    assert advised > 0
    assert not_advised > 0, "at the full level they would be"
