"""Finds change points: the points at which the mean of a series of measurements changed.

The search follows E-divisive (Matteson and James, "A Nonparametric Approach for Multiple Change Point Analysis of
Multivariate Data", JASA 109, 2014): the algorithm compares pairs of adjacent intervals, the first of which starts at
the beginning of a segment. The pair that differs most determines where the segment is split. Both parts are then
searched in the same way. At the end, as in Hunter (Fleming, Kołaczkowski et al., "Hunter: Using Change Point Detection
to Hunt for Performance Regressions", ICPE 2023), each change point is tested against the segments next to it. The
weakest change point is removed until all change points are significant.

The distance between intervals is the member of the E-divisive family with exponent 2, which is a difference of means.
Points are weighted by the inverse of their variance. The variance of a point is the sum of its own variance, which is
estimated from its repeats, and a variance between points, which is the same for all points (random effects: DerSimonian
and Laird, Controlled Clinical Trials 7, 1986).

A series grows by one point per night and is analysed every night, so the chance of a false alarm must cover all of
these interim analyses together. Each night spends `CHANCE / NIGHTS` (Lan and DeMets, Biometrika 70, 1983; at a constant
rate, because a series has no planned end). Only pairs of intervals that end with the new point are tested, because
earlier nights have tested the others. Pairs are nearly independent only if their lengths differ by about a factor of 2,
so the chance of a night is divided by log2 of the number of points. A difference divided by its standard error is
compared with the quantile of Student's t for the resulting chance. Only one of the two variances, the variance between
points, is estimated from the series, and the degrees of freedom account for this (Satterthwaite, Biometrics Bulletin 2,
1946).

Adjacent nights are correlated, because the effects of other load, room temperature and caches last longer than a night.
The correlation r of adjacent nights is estimated from the differences of points that are one night and two nights
apart. A change of the mean hardly affects these differences. The variance between points is multiplied by (1 + r) / (1
- r), as for the mean of an AR(1) process (Chakar, Lebarbier, Lévy-Leduc and Robin, Bernoulli 23, 2017). `python -m
bench decisions` measures the false alarms in 40 nights.

A point that is far above all of its neighbours, or far below all of them, is a spike and is left out. The neighbours of
a point are up to two points on either side. The last point has neighbours on one side only. If it differs from them, it
is left out until the next point confirms it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ironbench.stats.intervals import t_quantile, wilson

CHANCE = 0.003
"""Nominal chance that a series of `NIGHTS` points, analysed after each point, shows at least one false change point.
The actual chance is larger (`INDEPENDENT`), because variances are estimated from the same few points."""
NIGHTS = 40
"""Number of points over which `CHANCE` is divided. In a longer series, each further `NIGHTS` points spend the same
chance again."""


@dataclass(frozen=True, slots=True)
class FalseAlarms:
    """Result of a simulation of series without a change. Every series was analysed after each of `NIGHTS` nights."""

    correlation: float
    """Correlation of neighbouring nights."""
    series: int
    alarmed: int
    """Number of series that had a change point after at least one night."""

    @property
    def share(self) -> float:
        return self.alarmed / self.series

    @property
    def interval(self) -> tuple[float, float]:
        """95% confidence interval of the share."""
        return wilson(self.share, self.series)


INDEPENDENT = FalseAlarms(0.0, 6_000, 60)
CORRELATED = FalseAlarms(0.5, 2_000, 232)
"""`INDEPENDENT` is the output of `python -m bench decisions` with `IRONBENCH_BENCH_QUESTIONS=history
IRONBENCH_BENCH_SERIES=6000 IRONBENCH_BENCH_SEED=80`. `CORRELATED` is the output with `correlated`, 2,000 series and the
seed 81. If the search for change points is modified, compute both again. Reports and documentation quote these rates of
false alarms."""
LEAST = 6
"""Minimum number of points for a search."""
_SHORTEST = 2
"""Minimum number of points in a segment. A single point is either a spike or not confirmed yet."""
_WITHOUT_ONE = 2 / 3
"""A change must not depend on a single point. If any one point is left out, the difference must still exceed this
fraction of the bound."""
_TRIMMED = 0.15
"""The variance is estimated from differences between neighbours. This fraction of the differences, the largest ones, is
excluded, because changes and spikes cause large differences."""
_TRIMMED_MEAN = 0.5205
"""Mean of the lowest 85% of squared standard normal values: P(χ²₃ ≤ q) / 0.85, where P(χ²₁ ≤ q) = 0.85."""
_CONFIRMING = 3
_POWER = 1.2816
"""Normal quantile of 0.9."""
_LEAST_SHARE = 0.3
_UNSEEN = 6.0
"""At least this share of the variance is assumed to be variation between points: `_UNSEEN / n` for n points, and never
less than `_LEAST_SHARE`.

Measurements on different days always differ somewhat. A few points do not show how much, and the estimate can be zero
by chance. With a constant minimum of 0.3, nights 6 to 9 caused 19 of 30 false alarms in 2,500 simulated series of 40
nights (`python -m bench decisions`).
"""
_MOST_ALIKE = 0.6
"""Maximum correlation of neighbouring points. With a higher correlation, a change cannot be distinguished from a
drift."""
_SUPPOSED = 3.3
"""A difference of at least this many standard errors may be a change, and then does not count as variance between
points."""

Values = np.ndarray[Any, np.dtype[np.float64]]
Places = np.ndarray[Any, np.dtype[np.int_]]


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A change of the mean: position and size."""

    place: int
    """Index of the first point after the change."""
    difference: float
    """Mean after the change minus the mean before it."""
    low: float
    high: float
    """95% confidence interval of the difference."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Result of the analysis of a series."""

    points: tuple[ChangePoint, ...]
    spikes: tuple[int, ...]
    """Indices of points that differ from their neighbours on both sides."""
    unconfirmed: bool
    """Whether the last point differs from the points before it. Only the next point can show whether this is a change
    or a spike."""
    between: float
    """Standard deviation between points that the points' own variances do not explain."""
    detectable: float | None = None
    """Minimum detectable change of the mean. Three points after a change of this size, the change is found in 9 of 10
    series. The value is None if there are too few points."""
    correlation: float = 0.0
    """Estimated correlation of neighbouring points. 0 if neighbours are not more similar than other points."""


def changes(values: Sequence[float], own_variances: Sequence[float], chance: float = CHANCE) -> Changes:
    """Analyses points in order of time. `own_variances`: the variance of each value, estimated from its repeats.
    Variances must be above 0."""
    x, own = np.asarray(values, dtype=float), np.asarray(own_variances, dtype=float)
    if len(x) < LEAST:
        return Changes((), (), unconfirmed=False, between=0.0)
    apart = _apart(x, own + _variance_between_points(x, own), t_quantile(1 - chance / NIGHTS / 2, len(x) - 2))
    kept = np.flatnonzero(~apart)
    x, own = x[kept], own[kept]
    found: list[int] = []
    between, alike = _variance_between_points(x, own), 0.0
    if len(x) >= LEAST:
        alike = _correlation(x, own)
        # Neighbours are correlated, so they differ less than independent points. Differences of neighbours contain only
        # the fraction 1 - r of the variance between points.
        supposed = _places(x, own + between / (1 - alike) * _inflation(alike), _SUPPOSED)
        between = _left(x, own, supposed)
        if supposed:
            variances = own + between * _inflation(alike)
            bound = _bound(len(x), own, between, chance)
            found = _confirmed(x, 1 / variances, _places(x, variances, bound), bound)
    spikes = [int(place) for place in np.flatnonzero(apart)]
    unconfirmed = bool(spikes) and spikes[-1] == len(values) - 1
    return Changes(
        tuple(_change_points(x, own + between * _inflation(alike), found, kept)),
        tuple(spikes[:-1] if unconfirmed else spikes),
        unconfirmed,
        math.sqrt(between),
        _detectable(own, between, alike, len(found), chance) if len(x) >= LEAST else None,
        alike,
    )


def _detectable(own: Values, between: float, alike: float, found: int, chance: float) -> float:
    """Returns the minimum detectable change. If changes were found, half of the points are assumed to follow the last
    change."""
    n = len(own)
    variance = float(own.mean()) + between * _inflation(alike)
    error = math.sqrt(variance * (1 / _CONFIRMING + 1 / (n if not found else n / 2)))
    return (_bound(n, own, between, chance) + _POWER) * error


def _correlation(x: Values, own: Values) -> float:
    """Returns the correlation r of neighbouring points. The variance between points is estimated twice: from
    differences of neighbours, and from differences of points two apart. The second estimate divided by the first is 1 +
    r."""
    near, far = (_variance_at_distance(x, own, apart) for apart in (1, 2))
    return min(max(far / near - 1, 0.0), _MOST_ALIKE) if near > 0 else 0.0


def _inflation(alike: float) -> float:
    """Returns the factor by which the correlation of neighbours increases the variance of a mean."""
    return (1 + alike) / (1 - alike)


def _apart(x: Values, variances: Values, bound: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Returns for each point whether it is a spike: more than `bound` standard errors above all of its neighbours, or
    below all of them. The neighbours are up to two points on either side."""
    n = len(x)
    above, below = np.ones(n, dtype=bool), np.ones(n, dtype=bool)
    for step in (1, 2):
        far = (x[step:] - x[:-step]) / np.sqrt(variances[step:] + variances[:-step])
        above[step:] &= far > bound
        below[step:] &= far < -bound
        above[:-step] &= far < -bound
        below[:-step] &= far > bound
    return above | below


def _variance_between_points(x: Values, own: Values) -> float:
    """Returns the variance between points, without the points' own variance. The variance is estimated from differences
    of neighbours, so the mean need not be known."""
    return max(_variance_at_distance(x, own, 1), 0.0)


def _variance_at_distance(x: Values, own: Values, apart: int) -> float:
    """Estimates the variance between points from differences of points that are `apart` points apart. The estimate is
    half of the mean squared difference (von Neumann, Annals of Mathematical Statistics 12, 1941), minus the points' own
    variance. The largest differences are excluded, because changes and spikes cause them."""
    squared = np.sort((x[apart:] - x[:-apart]) ** 2 / 2)
    kept = squared[: len(squared) - math.ceil(_TRIMMED * len(squared))]
    return float(kept.mean()) / _TRIMMED_MEAN - float(own.mean())


def _left(x: Values, own: Values, places: Sequence[int]) -> float:
    """Returns the variance between points, without the points' own variance. The variance is computed around the means
    of the segments that start at `places`."""
    ends = [0, *places, len(x)]
    off = [x[a:b] - np.average(x[a:b], weights=1 / own[a:b]) for a, b in itertools.pairwise(ends)]
    freedom = max(1, len(x) - len(off))
    return max(0.0, float(np.sum(np.concatenate(off) ** 2)) / freedom - float(own.mean()))


def _places(x: Values, variances: Values, bound: float) -> list[int]:
    found: list[int] = []
    waiting = [(0, len(x))]
    while waiting:
        low, high = waiting.pop()
        if high - low < 2 * _SHORTEST:
            continue
        most, place, _ = _farthest(x[None, low:high], variances[None, low:high])
        if most[0] > bound:
            split = low + int(place[0])
            found.append(split)
            waiting += [(low, split), (split, high)]
    return sorted(found)


def _confirmed(x: Values, weights: Values, found: list[int], bound: float) -> list[int]:
    """Tests each change point against the two segments next to it. Removes the weakest change point until all are
    significant."""
    while found:
        ends = [0, *found, len(x)]
        held = [_strength(x, weights, *ends[at : at + 3]) for at in range(len(found))]
        weakest = int(np.argmin(held))
        if held[weakest] > bound:
            break
        del found[weakest]
    return found


def _strength(x: Values, weights: Values, low: int, place: int, high: int) -> float:
    """Returns the difference between the means before and after a change point, in standard errors. The result is
    reduced if the difference depends on a single point."""
    difference, error = _difference(x, weights, low, place, high)
    strength = abs(difference) / error
    for left_out in range(low, high):
        kept = weights.copy()
        kept[left_out] = 1e-12
        without, error = _difference(x, kept, low, place, high)
        strength = min(strength, math.copysign(abs(without) / error, without * difference) / _WITHOUT_ONE)
    return strength


def _difference(x: Values, weights: Values, low: int, place: int, high: int) -> tuple[float, float]:
    """Returns the difference of the weighted means of both sides, and its standard error."""
    sides = [slice(low, place), slice(place, high)]
    before, after = (float(np.average(x[side], weights=weights[side])) for side in sides)
    return after - before, math.sqrt(sum(1 / float(weights[side].sum()) for side in sides))


def _farthest(x: Values, variances: Values) -> tuple[Values, Places, Places]:
    """Finds for each row the two adjacent intervals that differ most. The first interval starts at the first value of
    the row. Returns the difference in standard errors, the index at which the second interval starts, and the index at
    which it ends."""
    weights = 1 / variances
    sums = np.concatenate([np.zeros((len(x), 1)), np.cumsum(weights, axis=1)], axis=1)
    totals = np.concatenate([np.zeros((len(x), 1)), np.cumsum(weights * x, axis=1)], axis=1)
    n = x.shape[1]
    most, place, end = np.zeros(len(x)), np.zeros(len(x), dtype=int), np.full(len(x), n)
    for split in range(_SHORTEST, n - _SHORTEST + 1):
        before, left = totals[:, split : split + 1], sums[:, split : split + 1]
        after = totals[:, split + _SHORTEST :] - before
        right = sums[:, split + _SHORTEST :] - left
        far = np.abs(after / right - before / left) / np.sqrt(1 / right + 1 / left)
        here = far.max(axis=1)
        better = here > most
        most[better], place[better] = here[better], split
        end[better] = split + _SHORTEST + far[better].argmax(axis=1)
    return most, place, end


def _bound(n: int, own: Values, between: float, chance: float) -> float:
    """Returns the threshold for a difference, in standard errors, when the series has `n` points."""
    share = max(between / (float(own.mean()) + between), _LEAST_SHARE, min(1.0, _UNSEEN / n))
    return t_quantile(1 - chance / NIGHTS / math.log2(n) / 2, (n - 2) / share**2)


def _change_points(x: Values, variances: Values, found: list[int], kept: Places) -> list[ChangePoint]:
    """Returns change points with confidence intervals. `kept`: index of each value in the original series, in which
    spikes are included."""
    if not found:
        return []
    ends = [0, *found, len(x)]
    half = t_quantile(0.975, len(x) - len(ends) + 1)
    points = []
    for at, place in enumerate(found):
        difference, error = _difference(x, 1 / variances, *ends[at : at + 3])
        points.append(ChangePoint(int(kept[place]), difference, difference - half * error, difference + half * error))
    return points
