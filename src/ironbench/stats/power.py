"""What a lab can find: power of the paired t test, the smallest difference it detects, and how many blocks it takes.

Power of the t test by the noncentral t distribution (Johnson and Welch, Biometrika 31, 1940; Cohen, Statistical Power
Analysis for the Behavioral Sciences, 1988, chapter 2). The spread is itself estimated from few blocks, so differences
and block counts are stated for its upper 90 % confidence limit: then the power promised is reached in nine of ten labs
although the spread was a guess (Browne, Statistics in Medicine 14, 1995, 1933-1940). With the usual 80 % it is reached
where noise is normal, but not where some trials are outliers (`python -m bench verdicts`).
"""

from __future__ import annotations

import math
from functools import lru_cache

from ironbench.stats.intervals import t_quantile

POWER = 0.9
ASSURANCE = 0.9
MOST_BLOCKS = 10_000
"""Beyond this no number of blocks is advised."""


def power(effect: float, blocks: int, level: float) -> float:
    """Chance that a two-sided t test at `level` finds a mean log ratio of `effect` standard deviations."""
    return _found(abs(effect) * math.sqrt(blocks), blocks - 1, level)


def _found(shift: float, freedom: int, level: float) -> float:
    """Chance that a two-sided t test at `level` finds what is `shift` standard errors large."""
    critical = t_quantile(1 - level / 2, freedom)
    return 1 - noncentral_t_below(critical, freedom, shift) + noncentral_t_below(-critical, freedom, shift)


def power_of_equivalence(margin: float, blocks: int, level: float) -> float:
    """Chance that two one-sided t tests at `level` find equal cells equivalent; `margin` in standard deviations.

    A lower bound: each test fails with the chance that noncentral t gives, and both chances are added.
    """
    freedom = blocks - 1
    missed = noncentral_t_below(t_quantile(1 - level, freedom), freedom, margin * math.sqrt(blocks))
    return max(0.0, 1 - 2 * missed)


def noncentral_t_below(t: float, freedom: int, shift: float) -> float:
    """P((Z + shift) / sqrt(χ²/freedom) ≤ t), `shift` at least 0.

    scipy (1.17) gives NaN where the chance is too small for it and where the shift is beyond about 10⁵: there Z is
    nothing compared with the shift, and χ² alone decides.
    """
    from scipy import special

    chance = float(special.nctdtr(freedom, shift, t))
    if not math.isnan(chance):
        return chance
    return float(special.gammaincc(freedom / 2, freedom / 2 * (shift / t) * (shift / t))) if t > 0 else 0.0


def effect(blocks: int, level: float, wanted: float = POWER) -> float:
    """The effect, in standard deviations of log ratios, that the test finds with the power wanted."""
    return errors_found(blocks - 1, level, wanted) / math.sqrt(blocks)


@lru_cache(maxsize=1024)
def errors_found(freedom: int, level: float, wanted: float = POWER) -> float:
    """The effect, in standard errors of its estimate, that a two-sided t test finds with the power wanted."""
    low, high = 0.0, 1.0
    while _found(high, freedom, level) < wanted:
        high *= 2
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _found(middle, freedom, level) < wanted else (low, middle)
    return high


def likely_spread(spread: float, blocks: int) -> float:
    """Upper 90 % confidence limit of the true spread, when `blocks` blocks showed `spread`."""
    from scipy import special

    freedom = blocks - 1
    # χ² with f degrees of freedom is twice a gamma variable of shape f/2.
    return spread * math.sqrt(freedom / (2 * float(special.gammaincinv(freedom / 2, 1 - ASSURANCE))))


def detectable(spread: float, blocks: int, level: float, seen: int | None = None) -> float | None:
    """Smallest relative difference found with 90 % power by `blocks` blocks. None below two blocks or level 0.

    `spread` is the standard deviation of log ratios in `seen` blocks (as many as `blocks` when left out). Differences
    of this size are found in both directions: a ratio of 1 - d is further from 1 in logarithms than one of 1 + d.
    """
    known = blocks if seen is None else seen
    if blocks < 2 or known < 2 or not 0 < level < 1:
        return None
    shift = effect(blocks, level) * likely_spread(spread, known)
    return math.expm1(shift) if shift < 700 else math.inf


def blocks_needed(margin: float, spread: float, seen: int, level: float, level_equal: float, least: int) -> int | None:
    """Fewest blocks that find a ratio of 1 + margin with 90 % power, and equal cells equivalent with 90 % power.

    `spread` was seen in `seen` blocks; None when more than 10 000 would be needed.
    """
    from scipy import special

    if seen < 2:
        return None
    known = likely_spread(spread, seen)
    if known == 0:
        return least
    size = math.log1p(margin) / known

    def enough(blocks: int) -> bool:
        return power(size, blocks, level) >= POWER and power_of_equivalence(size, blocks, level_equal) >= POWER

    # Normal theory gives the start: n = ((z(1-level/2) + z(power)) / effect)², and t needs a little more.
    start = float((special.ndtri(1 - level / 2) + special.ndtri(POWER)) / size) ** 2
    if start > MOST_BLOCKS:
        return None
    low, high = least - 1, max(least, math.ceil(start))
    while not enough(high):
        low, high = high, high + max(4, high // 4)
        if high > 2 * MOST_BLOCKS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
