"""Divides a false alarm rate among several interim analyses and several comparisons.

Interim analyses: A lab is analysed after each stage and stops at the first significant result. Without a correction,
this would raise more false alarms than a single analysis. Therefore, each analysis spends a part of the 5% false alarm
rate, in proportion to the number of completed blocks (Lan and DeMets, Biometrika 70, 1983; Kim and DeMets, Biometrika
74, 1987, the linear function). Analyses before the sixth block spend nothing. The levels follow from the joint normal
distribution of the cumulative sums (Armitage, McPherson and Rowe, Journal of the Royal Statistical Society A 132, 1969)
and are applied to t with the degrees of freedom of each analysis (Jennison and Turnbull, Group Sequential Methods,
2000, section 4.4).

Comparisons: Holm's method divides the level among them (Scandinavian Journal of Statistics 6, 1979).

Profiles: One comparison contains many measurements, such as the times of functions. The false discovery rate of these
measurements is limited (Benjamini and Hochberg, Journal of the Royal Statistical Society B 57, 1995).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

LEVEL = 0.05
"""Probability of a false alarm in any interim analysis or comparison of a round."""
LEAST_BLOCKS = 6
"""Minimum number of blocks for a decision."""
_GRID = 801
_FAR = 8.5
"""Number of standard deviations from the mean from which a normal density is treated as 0."""

Vector = np.ndarray[Any, np.dtype[np.float64]]


@lru_cache(maxsize=1024)
def levels(share: float, planned: tuple[int, ...], sides: int = 2) -> tuple[float, ...]:
    """Returns the nominal level of each interim analysis. Together, the analyses raise a false alarm with probability
    `share`.

    `planned`: cumulative number of blocks at each analysis, increasing. `sides`: 2 for two-sided tests, 1 for one-sided
    tests.
    """
    from scipy import special

    total = planned[-1]
    spent_levels: list[float] = []
    spent = 0.0
    before = 0
    sums: Vector | None = None
    density: Vector | None = None
    for blocks in planned:
        may_spend = 0.0 if blocks < LEAST_BLOCKS else share * blocks / total - spent
        if may_spend <= 0:
            bound = math.inf
        elif sums is None or density is None:
            bound = float(special.ndtri(1 - may_spend / sides))
        else:
            bound = _bound(sums, density, blocks, blocks - before, may_spend, sides)
        spent += may_spend
        spent_levels.append(sides * float(special.ndtr(-bound)))
        if blocks < total:
            sums, density = _density_if_continued(sums, density, before, blocks, bound, sides)
        before = blocks
    return tuple(spent_levels)


def _bound(sums: Vector, density: Vector, blocks: int, grown: int, share: float, sides: int) -> float:
    """Returns the bound z of this analysis for the standardised sum. With probability `share`, the sum exceeds the
    bound in this analysis and has exceeded no bound in an earlier analysis."""
    from scipy import special

    step = float(sums[1] - sums[0])
    low, high = 0.0, _FAR
    for _ in range(30):
        z = (low + high) / 2
        # By symmetry, the lower bound is crossed with the same probability.
        above = sides * step * float(density @ special.ndtr((sums - z * math.sqrt(blocks)) / math.sqrt(grown)))
        low, high = (z, high) if above > share else (low, z)
    return high


def _density_if_continued(
    sums: Vector | None, density: Vector | None, before: int, blocks: int, bound: float, sides: int
) -> tuple[Vector, Vector]:
    """Returns the density of the sum after `blocks` blocks, for labs that no analysis has stopped. The density is
    evaluated on a grid for the trapezoid rule."""
    edge = min(bound, _FAR) * math.sqrt(blocks)
    grid = np.linspace(-edge if sides == 2 else -_FAR * math.sqrt(blocks), edge, _GRID)
    grown = blocks - before
    scale = 1 / math.sqrt(2 * math.pi * grown)
    if sums is None or density is None:
        density_on = scale * np.exp(-(grid**2) / (2 * grown))
    else:
        apart = grid[:, None] - sums[None, :]
        density_on = scale * np.exp(-(apart**2) / (2 * grown)) @ density * float(sums[1] - sums[0])
    density_on[0] /= 2  # End points count half in the trapezoid rule; the stored values are density times weight.
    density_on[-1] /= 2
    return grid, density_on


def divisors(ps: Sequence[float], level: Callable[[int, int], float]) -> tuple[int, ...]:
    """Returns Holm's divisor of the level for each p value, in the given order. In ascending order of p, the divisors
    are m, m - 1, and so on, up to the first comparison that is not significant. Later comparisons have the same divisor
    as this comparison. With these levels, the confidence interval of a comparison excludes 1 if and only if Holm's
    method rejects the hypothesis. `level(place, divisor)`: nominal level of a comparison if the chance of a false alarm
    is divided by `divisor`.
    """
    results = [0] * len(ps)
    divisor, going = len(ps), True
    for place in _ascending(ps):
        results[place] = divisor
        going = going and ps[place] <= level(place, divisor)
        if going:
            divisor -= 1
    return tuple(results)


def corrected(ps: Sequence[float]) -> tuple[float, ...]:
    """Returns Holm's adjusted p values, at most 1, in the given order."""
    results = [0.0] * len(ps)
    largest = 0.0
    for rank, place in enumerate(_ascending(ps)):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[place]))
        results[place] = largest
    return tuple(results)


def discoveries(ps: Sequence[float], rate: float = LEVEL) -> tuple[bool, ...]:
    """Returns which hypotheses Benjamini and Hochberg's method rejects, in the given order.

    If the tests are independent or positively dependent, on average at most a fraction `rate` of the rejections is
    false (Benjamini and Yekutieli, Annals of Statistics 29, 2001). If all hypotheses are true, the probability that at
    least one is rejected is at most `rate`.
    """
    order = _ascending(ps)
    last = max((rank for rank, place in enumerate(order, 1) if ps[place] <= rate * rank / len(ps)), default=0)
    rejected = set(order[:last])
    return tuple(place in rejected for place in range(len(ps)))


def _ascending(ps: Sequence[float]) -> list[int]:
    return sorted(range(len(ps)), key=lambda place: ps[place])
