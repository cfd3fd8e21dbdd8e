"""The search for the best load, on simulated systems whose best load is known."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from ironbench.model.note import note
from ironbench.model.search import Limit, Search
from ironbench.report import wording
from ironbench.stats.scalability import Usl
from ironbench.study.optimum import (
    RATE,
    NextLoad,
    SearchResult,
    SearchTrial,
    TooFewTransactions,
    _Seen,
    most_trials,
    next_step,
    rungs,
)

System = Callable[[int], float]
KNEE = Usl(0.03, 0.0008, 500.0)
SYSTEMS: dict[str, System] = {
    "knee": KNEE.at,
    "plateau": lambda n: min(400.0 * n, 8000.0),
    "cliff": lambda n: 400.0 * n if n <= 40 else 4800.0,
    "rising": lambda n: 100.0 * n / (1 + 0.001 * n),
    "flat": lambda n: 1000.0,
}
LOOPS = 300
"""More trials than any search may take."""


def sought(
    search: Search, system: System, noise: float, seed: int, p99: System | None = None
) -> tuple[SearchResult, int]:
    """Returns the result and the trials it took; percentiles vary twice as much as throughput."""
    dice, trials = random.Random(seed), list[SearchTrial]()
    for _ in range(LOOPS):
        step = next_step(search, trials)
        if isinstance(step, SearchResult):
            return step, len(trials)
        n = step.point
        limited = (p99(n) * math.exp(dice.gauss(0, 2 * noise)),) if p99 else ()
        trials.append(SearchTrial(n, system(n) * math.exp(dice.gauss(0, noise)), limited))
    raise AssertionError("the search does not end")


@pytest.mark.parametrize("noise", [0.02, 0.05, 0.08])
@pytest.mark.parametrize("name", SYSTEMS)
def test_the_answer_is_nearly_as_fast_as_the_best(name: str, noise: float) -> None:
    system = SYSTEMS[name]
    best = max(map(system, range(1, 129)))
    found = [sought(Search("clients", 1, 128), system, noise, seed) for seed in range(40)]
    lost = sorted(1 - system(answer.point) / best for answer, _ in found if answer.point)
    assert len(lost) == 40
    assert lost[len(lost) // 2] <= 0.06
    assert lost[37] <= 0.15
    assert max(trials for _, trials in found) <= most_trials(Search("clients", 1, 128)) == 84


@pytest.mark.parametrize("most_s", [0.05, 0.1, 0.4])
def test_a_limit_is_kept_and_used_up(most_s: float) -> None:
    """p99 is four times the mean response time, which rises with clients, so the limit ends the range."""
    system = SYSTEMS["rising"]
    search = Search("clients", 1, 128, (Limit("response_time_p99_s", most_s),))

    def p99(n: int) -> float:
        return 0.004 * n

    allowed = max(n for n in range(1, 129) if p99(n) <= most_s)
    answers = [sought(search, system, 0.05, seed, p99)[0] for seed in range(60)]
    points = [answer.point or 0 for answer in answers]
    assert sum(p99(n) > most_s * 1.02 for n in points) <= 3
    assert sorted(points)[3] >= 0.7 * allowed
    assert sum(answer.ended_by == "response_time_p99_s" for answer in answers) >= 57 or allowed == 128


@pytest.mark.parametrize("seed", range(5))
def test_no_search_takes_more_trials_than_a_plan_announces(seed: int) -> None:
    search = Search("rate", 20, 3000, (Limit("response_time_p99_s", 0.05),))
    dice = random.Random(seed)
    _, trials = sought(search, float, 0.5, seed, lambda n: 0.05 * math.exp(dice.gauss(0, 1.5)))
    assert trials <= most_trials(search)


def test_a_limit_that_nothing_keeps_is_said() -> None:
    search = Search("clients", 1, 64, (Limit("response_time_p99_s", 0.001),))
    answer, trials = sought(search, SYSTEMS["knee"], 0.05, 1, lambda n: 0.004 * n)
    assert answer.point is None
    assert trials <= 10
    assert answer.exceeds_limit and answer.tried == (1,)
    assert (answer.note.code, answer.note.values["limit"]) == ("search-none-within-limit", "response_time_p99_s")


def test_a_search_that_shows_nothing_says_what_it_tried_and_that_it_is_inconclusive() -> None:
    search = Search("rate", 20, 1000, (Limit("response_time_p99_s", 0.010),))
    few = replace(
        SearchResult(search, None, 0.0, (0, 0), "response_time_p99_s", 20, 4, (20, 40)),
        too_few=TooFewTransactions("rows", ((0.99, 299),), 60.0),
    )
    assert few.note.values["percentiles"] == ((0.99, 299),)
    assert wording.text(few.note).startswith("inconclusive: ")
    behind = replace(few, ended_by=RATE, too_few=None)
    assert behind.note == note("search-none-sustained", of="rate", tried=(20, 40))
    dice = random.Random(3)
    answer, _ = sought(search, float, 0.3, 3, lambda n: 0.0101 * math.exp(dice.gauss(0, 0.3)))
    if answer.point is None:
        assert answer.exceeds_limit or "inconclusive" in wording.text(answer.note)


def test_on_a_plateau_the_lowest_load_is_best() -> None:
    answer, _ = sought(Search("clients", 1, 128), SYSTEMS["plateau"], 0.01, 3)
    assert answer.point is not None
    assert 19 <= answer.point <= 28
    assert answer.alike[1] >= 64
    assert (answer.note.values["low"], answer.note.values["high"]) == answer.alike


def test_throughput_that_still_rises_at_the_end_is_said_to() -> None:
    answer, _ = sought(Search("clients", 1, 32), SYSTEMS["rising"], 0.005, 3)
    assert answer.point == 32
    assert answer.note.values["ended_by"] == "range"


def test_loads_at_which_the_system_fails_are_like_a_cliff() -> None:
    answer, _ = sought(Search("clients", 1, 128), lambda n: 400.0 * n if n < 50 else 0.0, 0.02, 1)
    assert answer.point is not None
    assert 40 <= answer.point < 50


def test_a_system_that_fails_at_the_lowest_load_has_no_best_one() -> None:
    answer, trials = sought(Search("clients", 1, 128), lambda n: 0.0, 0.02, 1)
    assert (answer.point, trials) == (None, 2)
    assert answer.note == note("search-failed", of="clients", low=1, high=128, at=1)
    once = [SearchTrial(1, 0.0), SearchTrial(1, 100.0)]
    assert next_step(Search("clients", 1, 128), once) == NextLoad(2, note("search-ladder"))


def test_failed_trials_do_not_make_the_others_look_alike() -> None:
    search = Search("clients", 1, 8, (Limit("response_time_p99_s", 0.02),))
    good = [SearchTrial(n, 100.0 * n * wobble, (0.01 * wobble,)) for n in (1, 2) for wobble in (0.9, 1.1)]
    failed = [SearchTrial(n, 0.0, (0.02,)) for n in (4, 8) for _ in range(3)]
    without, beside = (_Seen(search, trials) for trials in (good, [*good, *failed]))
    assert beside.uncertainty(1, 2) == pytest.approx(without.uncertainty(1, 2))
    assert beside.kept(1) is without.kept(1) is True
    assert beside.best == 2


def test_the_same_trials_give_the_same_next_point() -> None:
    trials = [SearchTrial(n, 100.0 * n) for n in (1, 2, 4)]
    assert next_step(Search("clients", 1, 16), trials) == next_step(Search("clients", 1, 16), list(trials))


def test_the_ladder_is_climbed_and_descended() -> None:
    search, trials, way = Search("clients", 1, 12), list[SearchTrial](), []
    for _ in range(2 * len(rungs(search))):
        step = next_step(search, trials)
        assert isinstance(step, NextLoad)
        way.append(step.point)
        trials.append(SearchTrial(step.point, 100.0 * step.point))
    assert way == [1, 2, 4, 8, 12, 12, 8, 4, 2, 1]


def test_what_breaks_a_limit_by_far_is_not_exceeded_further() -> None:
    search = Search("clients", 1, 1024, (Limit("response_time_p99_s", 0.01),))
    dice, trials = random.Random(1), list[SearchTrial]()
    while isinstance(step := next_step(search, trials), NextLoad):
        assert step.point <= 16
        trials.append(
            SearchTrial(step.point, 100.0 * step.point, (0.002 * step.point * math.exp(dice.gauss(0, 0.05)),))
        )
    assert step.point in (4, 5)


@pytest.mark.parametrize("low", [1, 7, 100])
def test_a_range_of_one_needs_no_search(low: int) -> None:
    answer, _ = sought(Search("clients", low, low), SYSTEMS["rising"], 0.02, 1)
    assert answer.point == low


@pytest.mark.parametrize("seed", range(8))
def test_a_limit_is_broken_by_what_breaks_it_though_the_metric_is_nothing_now_and_then(seed: int) -> None:
    """Replication lag is zero most of the time; the logarithms of tiny values must not hide values of seconds."""
    dice, search = random.Random(seed), Search("clients", 1, 64, (Limit("replication_lag_s", 1.0),))
    trials: list[SearchTrial] = []
    while isinstance(step := next_step(search, trials), NextLoad):
        idle = dice.choice([0.0, 0.0, dice.uniform(0.01, 0.3)])
        lag_s = 5.0 * dice.uniform(0.9, 1.1) if step.point > 40 else idle
        trials.append(SearchTrial(step.point, 1000 * min(step.point, 16) * dice.uniform(0.98, 1.02), (lag_s,)))
    assert step.point is not None and step.point < 24
    assert step.alike[1] <= 40, step.note


def test_a_rate_that_is_not_kept_is_not_the_answer_whatever_the_limit_says() -> None:
    search = Search("rate", 100, 1600, limits=(Limit("response_time_p99_s", 0.1),))
    trials: list[SearchTrial] = []
    while isinstance(step := next_step(search, trials), NextLoad):
        rate = step.point
        trials.append(SearchTrial(rate, float(min(rate, 450)), (0.01,), behind=rate > 450))
    assert step.point is not None and 300 < step.point <= 450 and step.ended_by == RATE
    none = [SearchTrial(100, 50.0, (0.01,), behind=True) for _ in range(2)]
    assert (answer := next_step(search, none)) and isinstance(answer, SearchResult)
    assert (answer.point, answer.ended_by) == (None, RATE)
