"""Student's t distribution, confidence intervals based on it, and the confidence interval of a proportion."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from ironbench import _core

LEVEL = 0.05
"""Fraction of confidence intervals that do not contain the true value."""
Z95 = 1.959963984540054
"""97.5% quantile of the normal distribution."""


def t_quantile(p: float, freedom: float) -> float:
    """Returns t with P(T ≤ t) = p. Raises ValueError unless 0 < p < 1 and freedom > 0."""
    if not 0 < p < 1:
        raise ValueError("a quantile needs a share between 0 and 1")
    if not freedom > 0:
        raise ValueError("degrees of freedom must be above 0")
    return _core.student_t_quantile(p, freedom)


def t_above(t: float, freedom: float) -> float:
    """Returns P(T ≥ t), the p value of a one-sided t test. The result is accurate even if it is tiny."""
    return _core.student_t_above(t, freedom)


def t_two_sided(t: float, freedom: float) -> float:
    """Returns P(|T| ≥ |t|), the p value of a two-sided t test."""
    return 2 * t_above(abs(t), freedom)


def half_width(values: Sequence[float], level: float = LEVEL) -> float:
    """Returns the half width of the two-sided t interval of the mean (Student, "The Probable Error of a Mean",
    Biometrika 6, 1908).

    A fraction `level` of such intervals does not contain the true mean. Raises statistics.StatisticsError for fewer
    than two values.
    """
    n = len(values)
    return t_quantile(1 - level / 2, n - 1) * statistics.stdev(values) / math.sqrt(n)


def half_width_apart(a: Sequence[float], b: Sequence[float], level: float = LEVEL) -> float:
    """Returns the half width of Welch's t interval of the difference of two unpaired means (Welch, "The generalization
    of Student's problem when several different population variances are involved", Biometrika 34, 1947).

    Raises statistics.StatisticsError if a side has fewer than two values.
    """
    parts = [statistics.variance(side) / len(side) for side in (a, b)]
    if not sum(parts):
        return 0.0
    freedom = sum(parts) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, (a, b), strict=True))
    return t_quantile(1 - level / 2, freedom) * math.sqrt(sum(parts))


def wilson(share: float, n: float, z: float = Z95) -> tuple[float, float]:
    """Returns the score interval of a proportion in `n` independent observations. Returns (0, 1) if there are no
    observations.

    Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927), 209–212. The interval
    is valid even for proportions near 0 and 1 and for few observations, unlike share ± z·s (Brown, Cai, DasGupta,
    Statistical Science 16 (2001), 101–133). For correlated observations, pass the effective sample size as `n`, which
    may be fractional (Kish, Survey Sampling, 1965).
    """
    if n <= 0:
        return 0.0, 1.0
    z2 = z * z / n
    centre = (share + z2 / 2) / (1 + z2)
    half = z / (1 + z2) * math.sqrt(share * (1 - share) / n + z2 / (4 * n))
    return max(0.0, centre - half), min(1.0, centre + half)
