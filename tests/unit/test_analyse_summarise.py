"""Values are summarised with their uncertainty."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbench.study.summarise import overlap, summarise

values = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40)


def test_nothing_measured_is_not_zero() -> None:
    assert summarise([]) is None
    assert summarise([math.nan]) is None


def test_one_trial_says_it_has_no_spread() -> None:
    one = summarise([5.0])
    assert one is not None
    assert (one.n, one.interval, one.spread) == (1, None, 0.0)


def test_two_trials_have_a_range_but_no_interval() -> None:
    two = summarise([5.0, 6.0])
    assert two is not None
    assert two.interval is None


def test_the_t_interval_is_that_of_the_textbook() -> None:
    # Values 1..5: mean 3, s = 1.5811, t(4) = 2.776, half width 1.963.
    five = summarise([1, 2, 3, 4, 5])
    assert five is not None
    assert five.interval is not None
    assert five.interval == pytest.approx((1.037, 4.963), abs=1e-3)


@given(values)
def test_centre_lies_within_the_range_and_order_does_not_matter(found: list[float]) -> None:
    summary = summarise(found)
    assert summary is not None
    assert summary.low <= summary.centre <= summary.high
    assert summary.centre == statistics.median(found)
    assert summarise(found[::-1]) == summary or summary.n > 1  # fsum of the mean may differ in the last bit


@given(values, values)
def test_overlap_is_symmetric(a: list[float], b: list[float]) -> None:
    left, right = summarise(a), summarise(b)
    assert left is not None
    assert right is not None
    assert overlap(left, right) == overlap(right, left)
    assert overlap(left, left)
