"""Change points are found where means differ by more than their points' variation explains, and nowhere else."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ironbench.stats.change_points import LEAST, Changes, changes

NOISE, BLOCKS = 0.03, 6


def series(
    dice: np.random.Generator, points: int, shift: float = 0.0, at: int = 0, between: float = 0.0
) -> tuple[list[float], list[float]]:
    """Returns means of points whose trials vary by 3%, with the variances of the means."""
    levels = between * dice.standard_normal(points) + np.where(np.arange(points) >= at, shift, 0.0)
    trials = levels[:, None] + NOISE * dice.standard_normal((points, BLOCKS))
    own = trials.var(axis=1, ddof=1)
    return list(trials.mean(axis=1)), list((own + own.mean()) / 2 / BLOCKS)


def found(seed: int, points: int, shift: float = 0.0, at: int = 0, between: float = 0.0) -> Changes:
    return changes(*series(np.random.default_rng(seed), points, shift, at, between))


def test_noise_alone_has_a_change_point_in_fewer_than_one_of_100_series() -> None:
    for between in (0.0, 0.01):
        assert sum(bool(found(seed, 20, between=between).points) for seed in range(100)) <= 1


def test_a_shift_of_5_percent_is_found_within_3_points_in_9_of_10_series() -> None:
    shift = math.log(0.95)
    seen = [found(seed, 33, shift, at=30).points for seed in range(100)]
    assert sum(any(abs(one.place - 30) <= 2 for one in points) for points in seen) >= 90


@pytest.mark.parametrize("size", [0.05, 0.3, -0.3])
@pytest.mark.parametrize("place", [0, 1, 10, 18, 19])
def test_a_single_spike_is_no_change(size: float, place: int) -> None:
    for seed in range(10):
        values, variances = series(np.random.default_rng(seed), 20)
        values[place] += size
        assert changes(values, variances).points == ()


def test_the_last_point_waits_for_another_to_confirm_it() -> None:
    values, variances = series(np.random.default_rng(1), 21, -0.2, at=20)
    assert changes(values, variances).unconfirmed
    values, variances = series(np.random.default_rng(1), 22, -0.2, at=20)
    after = changes(values, variances)
    assert not after.unconfirmed
    assert [one.place for one in after.points] == [20]


def test_a_mean_that_returns_has_two_change_points() -> None:
    values, variances = series(np.random.default_rng(2), 40)
    for place in range(15, 25):
        values[place] += math.log(0.9)
    assert [one.place for one in changes(values, variances).points] == [15, 25]


def test_a_difference_that_wide_points_could_bring_about_is_none() -> None:
    """The same means are a change with precise points, but not with imprecise ones."""
    values, variances = series(np.random.default_rng(3), 20, math.log(0.95), at=10)
    assert changes(values, variances).points
    assert not changes(values, [variance * 40 for variance in variances]).points


def test_the_interval_holds_the_true_size_in_about_95_of_100_series() -> None:
    shift = math.log(0.9)
    points = [one for seed in range(200) for one in found(seed, 30, shift, at=15, between=0.01).points]
    held = sum(one.low <= shift <= one.high for one in points)
    assert len(points) >= 195
    assert held / len(points) >= 0.9


def test_fewer_points_than_can_be_judged_have_no_change_point() -> None:
    values, variances = series(np.random.default_rng(4), LEAST - 1, -1.0, at=3)
    assert changes(values, variances) == Changes((), (), unconfirmed=False, between=0.0)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000), offset=st.floats(-20, 20), scale=st.floats(0.1, 10), shift=st.sampled_from([0.0, -0.1])
)
def test_units_change_nothing(seed: int, offset: float, scale: float, shift: float) -> None:
    """Shifted and scaled logarithms have the same change points."""
    values, variances = series(np.random.default_rng(seed), 14, shift, at=7)
    moved = changes([offset + scale * one for one in values], [scale**2 * one for one in variances])
    assert [one.place for one in moved.points] == [one.place for one in changes(values, variances).points]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000))
def test_a_series_read_backwards_has_its_changes_where_it_had_them(seed: int) -> None:
    values, variances = series(np.random.default_rng(seed), 20, -0.15, at=9)
    forward, backward = changes(values, variances), changes(values[::-1], variances[::-1])
    assert [one.place for one in forward.points] == [20 - one.place for one in backward.points]


def alarms(correlation: float, series_: int, nights: int) -> int:
    """Counts the series without a change that have a change point on any of the nights when they are read."""
    dice = np.random.default_rng(5)
    count = 0
    for _ in range(series_):
        levels = dice.standard_normal(nights)
        for night in range(1, nights):
            levels[night] = correlation * levels[night - 1] + math.sqrt(1 - correlation**2) * levels[night]
        values = list(0.02 * levels + 0.003 * dice.standard_normal(nights))
        count += any(changes(values[:seen], [0.003**2] * seen).points for seen in range(LEAST, nights + 1))
    return count


def test_a_series_that_is_read_every_night_keeps_its_chance_of_a_false_alarm() -> None:
    assert alarms(0.0, 60, 30) <= 2
    assert alarms(0.5, 60, 30) <= 15


def test_correlation_of_neighbouring_points_is_estimated_and_a_shift_is_not_taken_for_it() -> None:
    dice = np.random.default_rng(6)
    levels = dice.standard_normal(120)
    shifted = levels + np.where(np.arange(120) >= 60, 8.0, 0.0)
    alike = levels.copy()
    for night in range(1, 120):
        alike[night] = 0.6 * alike[night - 1] + 0.8 * levels[night]
    found = [changes(list(one), [1e-6] * 120).correlation for one in (levels, shifted, alike)]
    assert found[0] < 0.25 and found[1] < 0.25 and found[2] > 0.25
