"""Drifts and steps, within a trial and between blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from factories import codes
from hypothesis import given
from hypothesis import strategies as st
from test_findings import lab, records

from ironbench.errors import InputError
from ironbench.model.driven import Driven
from ironbench.model.note import Note
from ironbench.model.observation import Observation
from ironbench.model.record import SLICES, Record
from ironbench.model.system import Load, System
from ironbench.plan.rates import at_shares
from ironbench.records import judge
from ironbench.report import wording
from ironbench.stats.steadiness import batch_means, change
from ironbench.study import verdict
from ironbench.study.verdict import drift_warnings
from ironbench.workloads import rate_change

CLOSED = Load(clients=2)


def noise(count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(count)


def test_a_step_is_found_where_it_is() -> None:
    found = change([*(10 + noise(15)), *(16 + noise(15, 2))])
    assert found is not None
    assert (found.kind, found.place) == ("step", 15)
    assert (found.before, found.after) == pytest.approx((10, 16), abs=0.8)


def test_the_nile_fell_in_1899() -> None:
    # Annual flow at Aswan 1871-1970; the change after 1898 is from Cobb, Biometrika 65 (1978).
    nile = [
        1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140,
        1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969,
        831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759,
        781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890,
        744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
    ]  # fmt: skip
    found = change(nile)
    assert found is not None
    assert (found.kind, 1871 + found.place) == ("step", 1899)


def test_a_drift_is_told_from_a_step() -> None:
    found = change(np.linspace(0, 10, 30) + noise(30))
    assert found is not None
    assert found.kind == "drift"
    assert found.after - found.before == pytest.approx(10, abs=1.5)


@pytest.mark.parametrize("count", [6, 10, 20, 50])
def test_a_steady_series_is_seldom_called_changed(count: int) -> None:
    told = sum(change(noise(count, seed)) is not None for seed in range(400))
    assert told <= 11  # 1% of 400, and three standard errors above


@given(st.lists(st.floats(-1e6, 1e6), max_size=30))
def test_a_series_that_is_constant_or_short_never_changed(values: list[float]) -> None:
    assert change(values[:5]) is None
    assert change([3.0] * len(values)) is None
    assert change(values) == change(values)


def test_batches_are_equally_long_and_the_rest_is_left_out() -> None:
    assert batch_means([1, 3, 5, 7, 100], 2).tolist() == [2, 6]
    assert batch_means([1], 2).size == 0


def blocks(ratios: list[float], level: float = 1000.0) -> list[tuple[int, float, float]]:
    return [(block, level * ratio, level) for block, ratio in enumerate(ratios)]


def test_a_ratio_that_changed_half_way_is_told() -> None:
    ratios = [*(1.0 + 0.01 * noise(6)), *(1.3 + 0.01 * noise(6, 2))]
    found = verdict.ratio_change(ratios)
    assert found is not None
    told = verdict.ratio_changed(found, range(12))
    assert (told.code, told.values["block"]) == ("ratio-changed", 7)
    assert (told.values["before"], told.values["after"]) == pytest.approx((1.0, 1.3), abs=0.01)
    assert verdict.ratio_change([1.0 + 0.01 * one for one in noise(12)]) is None


@pytest.mark.parametrize(
    "series", [np.linspace(0, 6, 12), np.repeat([0.0, 6.0], 6)], ids=["a drift", "a step in the middle"]
)
def test_the_ends_of_a_change_lie_within_their_intervals_as_often_as_these_promise(series: np.ndarray) -> None:
    inside, told = 0, 0
    for seed in range(400):
        found = change(series + 0.5 * noise(12, seed))
        if found and found.kind == ("drift" if series[1] else "step"):
            told += 1
            inside += all(
                low <= end <= high
                for (low, high), end in zip(found.interval(0.05), (series[0], series[-1]), strict=True)
            )
    assert told > 200
    assert 0.85 <= inside / told <= 0.98  # each at 95%, both at once


def test_a_drift_of_both_cells_is_told_and_a_steep_one_warned_of() -> None:
    plan = lab(blocks=(10,))
    steady = records(plan)
    gentle = [drifting(one, -0.004) for one in steady]
    steep = [drifting(one, -0.05) for one in steady]
    drifted, likelier = of(steep)
    assert (drifted.code, drifted.values["block"]) == ("both-changed", None)
    assert drifted.values["change"] < 0
    assert likelier.code == "machine-drifts"
    assert "machine-drifts" not in codes(*of(gentle))
    assert of(steady) == ()


def test_a_drift_of_systems_side_by_side_is_told_and_makes_no_false_alarm_likelier() -> None:
    plan = lab(blocks=(10,))
    steep = [
        replace(one, metrics={"throughput": one.metrics["throughput"] * math.exp(-0.2 * one.block)})
        for one in records(plan)
    ]
    slices = [replace(one, method=SLICES, turns_since=f"block {one.block}") for one in steep]
    assert codes(*of(steep)) == ["both-changed", "machine-drifts"]
    assert codes(*of(slices)) == ["both-changed"]


def drifting(one: Record, slope: float) -> Record:
    place = 2 * one.block + (one.cell.name != "log=disk")
    throughput = one.metrics["throughput"] * math.exp(slope * place)
    return replace(one, metrics={"throughput": throughput}, started_at=f"2026-11-21T01:{place:02d}:00")


def of(found: Sequence[Record]) -> tuple[Note, ...]:
    sides = {(one.cell.name, one.block): one.metrics["throughput"] for one in found}
    count = max(one.block for one in found) + 1
    pairs = [(block, sides["log=memory", block], sides["log=disk", block]) for block in range(count)]
    return drift_warnings("throughput", pairs, found)


def told(counts: np.ndarray, load: Load = CLOSED) -> list[str]:
    summary = {"elapsed_s": len(counts) / 10, "io": "blocking", "transactions": int(counts.sum())}
    summary |= {"not_started": 0, "unfinished": 0, "longest_wait_s": 0.0}
    found = Driven("", alive=True, summary=summary, timeline={"transactions": counts.astype("<f8").tobytes()})
    warnings = judge.warnings(System("null", "null"), load, found, Observation(), None, cycles=False)
    return [wording.text(one) for one in warnings if one.code == "not-steady"]


def test_throughput_that_changes_during_a_trial_is_told() -> None:
    counts = 100 + 5 * noise(300)
    assert told(counts) == []
    stepped = np.concatenate([counts[:150], counts[150:] * 0.7])
    assert told(stepped)[0].startswith("throughput fell by 30% after ")
    assert told(counts * np.linspace(0.6, 1, 300))[0].startswith("throughput rose by ")
    assert told(counts * np.linspace(1, 0.6, 300))[0].endswith("from the trial's start to its end")
    assert told(counts * np.linspace(1, 0.96, 300)) == []
    assert told(stepped[100:180]) == []
    assert told(stepped, Load(clients=2, rate=100.0)) == []


def test_a_column_is_tested_if_each_of_its_batches_has_five_values() -> None:
    assert rate_change.is_long_enough(bytes(8 * 100)) and not rate_change.is_long_enough(bytes(8 * 99))
    assert pytest.approx(10.0) == rate_change.LEAST_S


def test_a_steady_trial_of_the_minimum_length_is_seldom_reported_even_if_its_values_are_correlated() -> None:
    reported = 0
    for seed in range(300):
        values = noise(150, seed)
        for place in range(1, len(values)):  # correlation of 0.5 between successive values
            values[place] = 0.5 * values[place - 1] + math.sqrt(0.75) * values[place]
        column = np.maximum(0.0, 100 + 30 * values[50:])
        reported += bool(rate_change.changed(column.astype("<f8").tobytes(), 10.0))
    assert reported <= 18  # 6%; expected are 3%


def test_rates_are_shares_of_the_baselines_peak() -> None:
    assert at_shares(1000) == (500.0, 700.0, 900.0)
    assert at_shares(123456, (0.5,)) == (61700.0,)
    assert at_shares(0.1, (0.9,)) == (0.09,)


@given(st.floats(1e-3, 1e7))
def test_a_rate_never_exceeds_its_share(peak: float) -> None:
    for share, rate in zip((0.5, 0.7, 0.9), at_shares(peak), strict=True):
        assert rate <= peak * share * (1 + 1e-9)
        assert rate >= peak * share * 0.99


@pytest.mark.parametrize(("peak", "shares"), [(0.0, (0.5,)), (math.inf, (0.5,)), (10.0, (1.5,))])
def test_no_rate_follows_from_nonsense(peak: float, shares: tuple[float, ...]) -> None:
    with pytest.raises(InputError):
        at_shares(peak, shares)
