"""Tests a series for a drift or a step, and finds when it became steady.

Steps are detected with cumulative sums: the level changes where the cumulative sum of deviations from the mean is
farthest from 0 (Page, Biometrika 41, 1954; Hinkley, Biometrika 57, 1970). Drifts are detected with the slope of a
straight line. Both are tested for significance by shuffling the series (Taylor, "Change-Point Analysis", 2000; Fisher,
The Design of Experiments, 1935, section 21). Each of the two tests has half of the error probability. If a test is
significant, the function reports the step or the drift, whichever has the smaller residuals. Libraries for many change
points (ruptures, pelt) are not used, because they need a tuned penalty and give no error probability.

MSER-5 finds the end of the warm-up (White, "An effective truncation heuristic for bias reduction in simulation output",
Simulation 69 (1997) 323-334; White, Cobb and Spratt, "A comparison of five steady-state truncation heuristics for
simulation", Proceedings of the 2000 Winter Simulation Conference, 755-760). Observations are averaged in batches of
five. If the first d of k batches are dropped, the statistic is the sum over j > d of (Z_j - mean)² / (k - d)². The
warm-up ends after the d batches for which the statistic is smallest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ironbench.stats.intervals import t_quantile

CHANCE = 0.01
"""Probability that a change is reported if the values are independent and nothing changes."""
LEAST = 6
"""Minimum number of values. Fewer values have too few permutations for a probability of `CHANCE`."""
_SHUFFLES = 1999
BATCH = 5
LEAST_BATCHES = 50
"""Minimum number of batches for an assessment. With fewer batches, the statistic is too noisy."""
_TAIL = 5
"""Number of batches at the end that cannot be the end of the warm-up, because the statistic of very few batches is
small by chance."""

Values = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Change:
    """A change in a series. `before` and `after` are the levels of a step, or the two ends of a drift."""

    kind: str
    """`step` or `drift`."""
    place: int
    """First index of the new level. 0 for a drift."""
    before: float
    after: float
    errors: tuple[float, float]
    """Standard errors of `before` and `after`, from the residuals of the step or the line."""
    freedom: int
    """Degrees of freedom of the standard errors."""

    def interval(self, level: float) -> tuple[tuple[float, float], tuple[float, float]]:
        """Returns the confidence intervals of `before` and `after`, each with confidence 1 − `level`."""
        width = t_quantile(1 - level / 2, self.freedom)
        (a, b), (of_a, of_b) = (self.before, self.after), self.errors
        return (a - width * of_a, a + width * of_a), (b - width * of_b, b + width * of_b)


TOO_SHORT, STILL_CHANGING = "too short", "still changing"
"""Reasons why the start of the steady state is unknown: too few batches, or changes in the second half."""


@dataclass(frozen=True, slots=True)
class Steady:
    """The time from which a series is steady. If the time is unknown, the reason why."""

    seconds: float | None
    """Seconds from the start of the series until it is steady. None if unknown."""
    reason: str = ""


def change(values: Sequence[float] | Values) -> Change | None:
    """Returns the change in a series of finite values. Returns None if no change is significant. The result is
    deterministic."""
    series = np.asarray(values, dtype=np.float64)
    if len(series) < LEAST or np.ptp(series) == 0:
        return None
    shuffled = np.random.default_rng(len(series)).permuted(np.tile(series, (_SHUFFLES, 1)), axis=1)
    rows = np.vstack([series, shuffled])
    if all(_chance(strayed) > CHANCE / 2 for strayed in (_strayed(rows), _slopes(rows))):
        return None
    step, line = _step(series), _line(series)
    return step[1] if step[0] < line[0] else line[1]


def warm_up(values: Sequence[float] | np.ndarray[Any, Any], bucket_s: float) -> Steady:
    """Finds the end of the warm-up. `values`: one value for each bucket of `bucket_s` seconds, from the start of the
    load, without gaps."""
    batches = len(values) // BATCH
    if batches < LEAST_BATCHES:
        return Steady(None, TOO_SHORT)
    means = np.asarray(values, dtype=float)[: batches * BATCH].reshape(batches, BATCH).mean(axis=1)
    left = np.arange(batches, 0, -1)
    sums, squares = (np.cumsum(part[::-1])[::-1] for part in (means, means**2))
    statistic = np.maximum(squares - sums**2 / left, 0.0) / left.astype(float) ** 2
    dropped = int(np.argmin(statistic[: batches - _TAIL]))
    if dropped > batches / 2:
        return Steady(None, STILL_CHANGING)
    return Steady(round(dropped * BATCH * bucket_s, 3))


def batch_means(values: Sequence[float] | Values, batches: int) -> Values:
    """Returns the means of batches of equal length. Remaining values at the end are dropped. Returns no means if there
    are fewer values than batches. Batch means are less correlated than the values (Law and Kelton, Simulation Modeling
    and Analysis, section 9.5).
    """
    length = len(values) // batches
    series = np.asarray(values, dtype=np.float64)[: length * batches]
    return series.reshape(batches, length).mean(axis=1) if length else np.empty(0)


def _chance(strayed: Values) -> float:
    """Returns the fraction of rows whose deviation is at least as large as that of the first row. The first row counts
    as one of them."""
    # A shuffle with the same deviation as the series must count. The tolerance is for rounding errors.
    return float(np.mean(strayed >= strayed[0] * (1 - 1e-9)))


def _strayed(rows: Values) -> Values:
    """Returns the largest absolute cumulative sum of deviations of each row."""
    distances: Values = np.abs(np.cumsum(rows - rows.mean(axis=1, keepdims=True), axis=1)).max(axis=1)
    return distances


def _slopes(rows: Values) -> Values:
    """Returns the absolute slope of the straight line through each row, in arbitrary units."""
    slopes: Values = np.abs(rows @ (np.arange(rows.shape[1]) - (rows.shape[1] - 1) / 2))
    return slopes


def _step(series: Values) -> tuple[float, Change]:
    """Finds the step with the smallest residual sum of squares. Returns this sum and the step."""

    def left(place: int) -> float:
        return sum(float(((part - part.mean()) ** 2).sum()) for part in (series[:place], series[place:]))

    place = min(range(1, len(series)), key=left)
    before, after, freedom = series[:place], series[place:], len(series) - 2
    noise = math.sqrt(left(place) / freedom)
    errors = noise / math.sqrt(len(before)), noise / math.sqrt(len(after))
    return left(place), Change("step", place, float(before.mean()), float(after.mean()), errors, freedom)


def _line(series: Values) -> tuple[float, Change]:
    times = np.arange(len(series), dtype=np.float64)
    times -= times.mean()
    slope = float((times * series).sum() / (times**2).sum())
    fitted = series.mean() + slope * times
    left, freedom = float(((series - fitted) ** 2).sum()), len(series) - 2
    error = math.sqrt(left / freedom * (1 / len(series) + times[0] ** 2 / float((times**2).sum())))
    return left, Change("drift", 0, float(fitted[0]), float(fitted[-1]), (error, error), freedom)
