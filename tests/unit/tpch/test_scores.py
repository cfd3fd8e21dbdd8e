"""Benchmark scores follow the specified formulas."""

import math

import pytest

from ironbench.workloads.tpch import scores

SECONDS = [1.0, 2.0, 4.0, 8.0] + [1.0] * 18
REFRESHES = [0.5, 2.0]


def test_power_is_3600_times_the_scale_over_the_geometric_mean_of_24_intervals() -> None:
    by_hand = 3600 * 10 / (1 * 2 * 4 * 8 * 0.5 * 2) ** (1 / 24)
    assert scores.power(10, SECONDS, REFRESHES, by_the_rules=True) == pytest.approx(by_hand)
    assert scores.power(10, SECONDS, REFRESHES, by_the_rules=False) == pytest.approx(by_hand)


@pytest.mark.parametrize(
    ("interval_s", "told_s"), [(0.0004, 0.1), (0.049, 0.1), (0.05, 0.1), (0.14, 0.1), (0.25, 0.3), (12.349, 12.3)]
)
def test_intervals_are_rounded_to_tenths_and_never_to_nothing(interval_s: float, told_s: float) -> None:
    assert scores.rounded_s(interval_s) == told_s


def test_a_query_a_thousand_times_as_fast_as_the_slowest_is_raised_and_a_refresh_is_not() -> None:
    queries = [5000.0, 0.1] + [10.0] * 20
    assert scores.floored_s(queries)[1] == 5.0
    with_floor = scores.power(1, queries, [0.1, 0.1], by_the_rules=True)
    by_hand = 3600 / math.exp((math.log(5000) + math.log(5) + 20 * math.log(10) + 2 * math.log(0.1)) / 24)
    assert with_floor == pytest.approx(by_hand)
    assert scores.power(1, queries, [0.1, 0.1], by_the_rules=False) > with_floor


def test_below_scale_factor_one_rounding_decides_and_the_unrounded_figure_tells_systems_apart() -> None:
    fast, slow = [0.002] * 22, [0.02] * 22
    assert (
        scores.of_power_test(0.01, fast, [0.01] * 2)["power"] == scores.of_power_test(0.01, slow, [0.01] * 2)["power"]
    )
    unrounded = [scores.of_power_test(0.01, one, [0.01] * 2)["power_unrounded"] for one in (fast, slow)]
    assert unrounded[0] > 5 * unrounded[1]


def test_throughput_counts_every_query_of_every_stream_by_the_hour() -> None:
    assert scores.throughput(10, 3, 22, 660.0, by_the_rules=True) == pytest.approx(3 * 22 * 3600 / 660 * 10)
    assert scores.of_throughput_test(1, 2, 0.01)["stream_throughput"] == pytest.approx(2 * 22 * 3600 / 0.1)


def test_the_composite_is_the_geometric_mean_and_needs_both() -> None:
    found = scores.of_both({"power": 100.0, "stream_throughput": 400.0, "power_unrounded": 1.0})
    assert found == {"composite": 200.0}


@pytest.mark.parametrize(("scale", "streams"), [(0.01, 2), (1, 2), (10, 3), (30, 4), (50, 4), (1000, 7), (100000, 11)])
def test_a_throughput_test_has_at_least_the_specified_streams(scale: float, streams: int) -> None:
    assert scores.minimum_streams(scale) == streams
