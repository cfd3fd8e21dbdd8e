"""The highest rate within a response time limit: interpolated in each block, with an interval over blocks."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from factories import DISK, MEMORY, record, suspect, unfolded

from ironbench.errors import InputError
from ironbench.model.note import note
from ironbench.model.record import RATE_NOT_KEPT, Record
from ironbench.model.system import Choice, Load, System
from ironbench.plan.requirements import bound
from ironbench.report import formats
from ironbench.report.headroom import page, reasons
from ironbench.study.headroom import Headroom, crossing, headroom

LIMIT = bound("p99 < 20ms", "--limit")
RATES = (200.0, 400.0, 600.0, 800.0, 1000.0, 1200.0, 1400.0, 1600.0, 1800.0)


def trial(system: System, rate: float, p99_s: float, block: int, kept: bool = True) -> Record:
    load = Load(rate=rate, duration_s=30.0, on_error="stop")
    metrics = {"response_time_p99_s": p99_s}
    one = record(system, 16, rate, block=block, purpose="lab", load=load, metrics=metrics, series="lab")
    one = replace(one, id=f"{system.label}-{rate:g}-{block}")
    return one if kept else replace(one, warnings=(note(RATE_NOT_KEPT, due=1.0, done=0.5),))


def queue(capacity: float, noise: Callable[[], float]) -> Callable[[float], tuple[float, bool]]:
    """Returns the p99 of an M/M/1 queue, ln(100) / (capacity − rate) (Kleinrock, Queueing Systems I, 1975, section
    3.2)."""

    def p99(rate: float) -> tuple[float, bool]:
        if rate >= capacity:
            return 3.0, False
        return math.log(100) / (capacity - rate) * noise(), True

    return p99


def lab(capacities: Sequence[float], seed: int = 1, deviation: float = 0.1, blocks: int = 6) -> list[Record]:
    """Returns trials of two systems. The variation between blocks changes the capacity of both systems; the variation
    of trials changes each p99."""
    drawn, trials = random.Random(seed), []
    for block in range(blocks):
        speed = math.exp(drawn.gauss(0, 0.05))
        for system, capacity in zip((DISK, MEMORY), capacities, strict=False):
            own = capacity * speed * math.exp(drawn.gauss(0, 0.03))
            p99 = queue(own, lambda: math.exp(drawn.gauss(0, deviation)))
            trials += [trial(system, rate, *((at := p99(rate))[0], block, at[1])) for rate in RATES]
    return trials


@pytest.mark.parametrize("capacity", [700.0, 901.0, 1750.0])
def test_between_two_sustained_rates_the_interpolation_is_exact_for_a_queue(capacity: float) -> None:
    below = [rate for rate in RATES if rate < capacity]
    points = [(rate, math.log(100) / (capacity - rate), True) for rate in below]
    limit = math.log(100) / (capacity - (below[-2] + below[-1]) / 2)
    assert crossing(points, limit) == pytest.approx((below[-2] + below[-1]) / 2, rel=1e-9)


def test_below_a_rate_that_was_not_sustained_the_interpolation_is_at_most_two_percent_too_high() -> None:
    points = [(800.0, math.log(100) / 100, True), (1000.0, 3.0, False)]
    for limit in (0.05, 0.1, 0.4):
        assert 800 < crossing(points, limit) < 1.02 * (900 - math.log(100) / limit)


def test_a_rate_that_was_not_sustained_counts_as_over_the_limit() -> None:
    sustained = [(400.0, 0.010, True), (800.0, 0.012, True)]
    assert crossing(sustained, 0.02) == math.inf
    assert 400 < crossing([(400.0, 0.010, True), (800.0, 0.012, False)], 0.02) < 800


def test_one_slow_trial_at_a_low_rate_does_not_decide_alone() -> None:
    rising = [(rate, 0.004 * math.exp(rate / 600), True) for rate in RATES]
    slow = [(rate, 0.021 if rate == 400 else value, True) for rate, value, _ in rising]
    assert crossing(rising, 0.02) == pytest.approx(600 * math.log(5), rel=0.02)
    assert crossing(slow, 0.02) == crossing(rising, 0.02)


@pytest.mark.parametrize(("limit_s", "expected"), [(0.001, 0.0), (100.0, math.inf)])
def test_a_limit_outside_the_measured_values_has_no_rate(limit_s: float, expected: float) -> None:
    assert crossing([(rate, 0.00001 * rate, True) for rate in RATES], limit_s) == expected


def test_intervals_contain_planted_rates_and_ratios() -> None:
    inside = {"rate": 0, "ratio": 0}
    for seed in range(200):
        found = headroom(lab((900.0, 1500.0), seed), LIMIT, None)
        truths = [900 - math.log(100) / 0.02, 1500 - math.log(100) / 0.02]
        rate, ratio = found.systems[0].highest, found.ratios[0]
        assert rate and ratio and rate.low and rate.high and ratio.low and ratio.high
        inside["rate"] += rate.low <= truths[0] <= rate.high
        inside["ratio"] += ratio.low <= truths[1] / truths[0] <= ratio.high
    # Binomial: 95% of 200 have at least 183 in all but 2% of cases. Interpolation may add a small bias.
    assert min(inside.values()) >= 180, inside


def test_two_equal_systems_are_rarely_called_different() -> None:
    called = 0
    for seed in range(200):
        ratio = headroom(lab((900.0, 900.0), seed), LIMIT, None).ratios[0]
        called += ratio is not None and ratio.clear
    assert called <= 18, called  # 5% of 200, and 2.6 standard deviations


def test_a_system_that_is_within_the_limit_at_every_rate_has_only_a_bound() -> None:
    found = headroom(lab((900.0, 9000.0)), LIMIT, 300.0)
    assert (found.systems[1].highest, found.systems[1].above, found.ratios) == (None, 6, (None,))
    assert not found.decided
    assert "measure higher rates" in " ".join(reasons(found))


def test_blocks_with_only_a_bound_leave_no_rate_in_the_document() -> None:
    within = [replace(one, block=one.block + 6) for one in lab((9000.0,), blocks=1)]
    found = headroom([*lab((900.0,)), *within], LIMIT, 300.0)
    (system,) = json.loads(formats.of_page("json")(page(found)))["systems"]
    assert (system["blocks_above_highest_rate"], system["highest_rate"], system["growth"]) == (1, None, None)


def test_trials_of_several_runs_of_a_system_all_count() -> None:
    runs = [[replace(one, series=name) for one in lab((900.0,), seed)] for name, seed in (("first", 1), ("second", 2))]
    alone = [headroom(run, LIMIT, None).systems[0].highest for run in runs]
    both = headroom([one for run in runs for one in run], LIMIT, None).systems[0].highest
    assert alone[0] and alone[1] and both and both.blocks == 6
    low, high = sorted(one.value for one in alone if one)
    assert low < both.value < high


def test_two_blocks_give_no_interval_and_no_verdict() -> None:
    found = headroom(lab((900.0, 1500.0), blocks=2), LIMIT, None)
    assert found.systems[0].highest is not None and not found.systems[0].highest.known
    assert found.ratios == (None,)
    assert not found.decided


def test_the_lab_declares_which_system_is_the_baseline() -> None:
    trials = [replace(one, cell=replace(one.cell, name=one.system.label)) for one in lab((900.0, 1500.0))]
    order = [MEMORY.label, DISK.label]
    for given in (trials, trials[::-1]):
        assert [one.name for one in headroom(given, LIMIT, None, order=order).systems] == order


def test_trials_of_a_search_do_not_count() -> None:
    searched = [replace(one, search_range=(100, 2000)) for one in lab((900.0,))]
    with pytest.raises(InputError, match="no system was measured at 2 or more rates"):
        headroom(searched, LIMIT, None)


def test_a_rate_with_too_few_transactions_is_not_called_over_the_limit() -> None:
    trials = [trial(DISK, rate, 0.03, block) for rate in (200.0, 400.0) for block in range(6)]
    few = [replace(one, metrics={**one.metrics, "transactions": 100.0}) for one in trials if "-200-" in one.id]
    found = headroom([*few, *trials[6:], *[trial(DISK, 600.0, 0.05, block) for block in range(6)]], LIMIT, None)
    [system] = found.systems
    assert (system.below, system.below_rate, system.short, system.highest) == (6, 400.0, 6, None)
    [reason] = reasons(found)
    assert "longer duration" in reason and "measure lower rates" not in reason


def test_a_percentile_with_many_waiting_transactions_is_over_the_limit_if_its_lower_bound_is() -> None:
    waiting = {"transactions": 3000.0, "censored": 60.0, "longest_wait_s": 1.0}
    for p99_s, short, above in ((0.03, 0, 0), (0.015, 6, 6)):
        trials = [trial(DISK, rate, 0.01, block) for rate in (200.0, 400.0) for block in range(6)]
        trials += [trial(DISK, 600.0, p99_s, block) for block in range(6)]
        trials[12:] = [replace(one, metrics={**one.metrics, **waiting}) for one in trials[12:]]
        [system] = headroom(trials, LIMIT, None).systems
        assert (system.short, system.above) == (short, above)
        assert system.complete == (short == 0)


def test_a_system_below_todays_load_or_near_it_is_not_decided() -> None:
    found = {today: headroom(lab((900.0,)), LIMIT, today) for today in (300.0, 680.0, 2000.0)}
    assert [(one.decided, one.exceeded) for one in found.values()] == [(True, False), (False, False), (True, True)]
    assert "inconclusive" in reasons(found[680.0])[0] and "sustains only" in reasons(found[2000.0])[0]


def test_a_flagged_trial_leaves_the_answer_undecided() -> None:
    trials = lab((900.0,))
    flagged = [suspect(one) if one.block == 0 and one.cell.load.rate == 200 else one for one in trials]
    assert headroom(trials, LIMIT, 300.0).decided
    assert not headroom(flagged, LIMIT, 300.0).decided
    assert "1 trial at sustained rates is flagged" in " ".join(reasons(headroom(flagged, LIMIT, 300.0)))


def test_systems_of_two_runs_are_compared_unpaired() -> None:
    trials = [replace(one, series=one.system.label) for one in lab((900.0, 1500.0))]
    apart, together = headroom(trials, LIMIT, None), headroom(lab((900.0, 1500.0)), LIMIT, None)
    assert (apart.paired, together.paired) == (False, True)
    assert apart.ratios[0] and together.ratios[0]
    assert apart.ratios[0].value == pytest.approx(together.ratios[0].value, rel=1e-9)
    assert _width(apart) > _width(together)  # blocks vary by 5%, which cancels out in pairs


def _width(found: Headroom) -> float:
    ratio = found.ratios[0]
    assert ratio and ratio.low and ratio.high
    return ratio.high / ratio.low


@pytest.mark.parametrize("text", ["p99 > 20ms", "rate = 200/s", "rate >= 200/s"])
def test_a_limit_that_is_no_upper_bound_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not an upper bound of a response time"):
        bound(text, "--limit")


def test_trials_of_different_work_are_refused() -> None:
    other = [replace(one, choice=Choice("tpcb-like")) for one in lab((900.0,))]
    trials = lab((900.0,)) + [replace(one, system=MEMORY, id=f"{one.id}-b") for one in other]
    with pytest.raises(InputError, match="different work"):
        headroom(trials, LIMIT, None)


def test_closed_loops_and_a_single_rate_are_refused() -> None:
    with pytest.raises(InputError, match="no system was measured at 2 or more rates"):
        headroom([record(DISK, 8, 1000.0)], LIMIT, None)
    with pytest.raises(InputError, match="no system was measured at 2 or more rates"):
        headroom([trial(DISK, 400.0, 0.01, block) for block in range(6)], LIMIT, None)


def test_a_lower_highest_rate_is_a_percentage_of_the_first_systems() -> None:
    found = page(headroom(lab((1500.0, 900.0)), LIMIT, 400.0))
    assert found.answer is not None
    (sentence,) = [point.text for point in found.answer.points if "the rate of log on disk" in point.text]
    assert "sustains only" in sentence and "% of the rate" in sentence and "0." not in sentence


def test_the_page_starts_with_the_growth_of_todays_load_on_the_baseline() -> None:
    found = headroom(lab((900.0, 1500.0)), LIMIT, 400.0)
    content = page(found)
    assert content.answer is not None
    assert content.answer.decision.text.startswith("On log on disk, today's load can grow by ")
    assert any("the rate of log on disk" in point.text for point in content.answer.points)
    assert "99th-percentile response time is" in unfolded(content)
    document = json.loads(formats.of_page("json")(content))
    assert document["systems"][0]["highest_rate"]["blocks"] == 6
    assert document["systems"][0]["growth"]["value"] == pytest.approx(
        document["systems"][0]["highest_rate"]["value"] / 400
    )
