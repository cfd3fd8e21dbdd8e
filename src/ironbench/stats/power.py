"""Computes the power of the paired t test, the minimum detectable effect, and the number of blocks that a test needs.

Power is calculated with the noncentral t distribution (Johnson and Welch, Biometrika 31, 1940; Cohen, Statistical Power
Analysis for the Behavioral Sciences, 1988, chapter 2). The standard deviation is estimated from few blocks, so effects
and numbers of blocks are computed for its upper 90% confidence limit. The true standard deviation is below this limit
in nine of ten labs, which then reach the stated power (Browne, Statistics in Medicine 14, 1995, 1933-1940). The usual
80% limit suffices for normal noise, but not if some trials are outliers (`python -m bench verdicts`).
"""

from __future__ import annotations

import math
from functools import lru_cache

from ironbench.stats.intervals import t_quantile

POWER = 0.9
ASSURANCE = 0.9
MOST_BLOCKS = 10_000
"""Largest number of blocks that ironbench recommends."""


def power(effect: float, blocks: int, level: float) -> float:
    """Returns the probability that a two-sided t test at `level` detects a mean log ratio of `effect` standard
    deviations."""
    return _detection_probability(abs(effect) * math.sqrt(blocks), blocks - 1, level)


def _detection_probability(shift: float, freedom: int, level: float) -> float:
    """Returns the probability that a two-sided t test at `level` detects an effect of `shift` standard errors."""
    critical = t_quantile(1 - level / 2, freedom)
    return 1 - noncentral_t_below(critical, freedom, shift) + noncentral_t_below(-critical, freedom, shift)


def power_of_equivalence(margin: float, blocks: int, level: float) -> float:
    """Returns a lower bound of the probability that two one-sided t tests at `level` find equal configurations
    equivalent. `margin`: the margin in standard deviations. The noncentral t distribution gives the probability that
    one of the two tests fails. The bound is 1 minus the sum of both probabilities.
    """
    freedom = blocks - 1
    missed = noncentral_t_below(t_quantile(1 - level, freedom), freedom, margin * math.sqrt(blocks))
    return max(0.0, 1 - 2 * missed)


def noncentral_t_below(t: float, freedom: int, shift: float) -> float:
    """Returns P((Z + shift) / sqrt(χ²/freedom) ≤ t) for `shift` ≥ 0.

    scipy (1.17) returns NaN if the probability is too small or the shift exceeds about 10⁵. In that case, Z is
    negligible compared with the shift, and the result is computed from χ² only.
    """
    from scipy import special

    chance = float(special.nctdtr(freedom, shift, t))
    if not math.isnan(chance):
        return chance
    return float(special.gammaincc(freedom / 2, freedom / 2 * (shift / t) * (shift / t))) if t > 0 else 0.0


def effect(blocks: int, level: float) -> float:
    """Returns the effect that the test detects with probability `POWER`. The effect is in standard deviations of log
    ratios."""
    return errors_found(blocks - 1, level) / math.sqrt(blocks)


@lru_cache(maxsize=1024)
def errors_found(freedom: int, level: float) -> float:
    """Returns the effect that a two-sided t test detects with probability `POWER`. The effect is in standard errors of
    its estimate."""
    low, high = 0.0, 1.0
    while _detection_probability(high, freedom, level) < POWER:
        high *= 2
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _detection_probability(middle, freedom, level) < POWER else (low, middle)
    return high


def likely_spread(spread: float, blocks: int) -> float:
    """Returns the upper 90% confidence limit of the true standard deviation if `blocks` blocks showed `spread`."""
    from scipy import special

    freedom = blocks - 1
    # χ² with f degrees of freedom is twice a gamma variable of shape f/2.
    return spread * math.sqrt(freedom / (2 * float(special.gammaincinv(freedom / 2, 1 - ASSURANCE))))


def detectable(spread: float, blocks: int, level: float, seen: int | None = None) -> float | None:
    """Returns the minimum detectable effect as a relative difference: with `blocks` blocks, it is detected with 90%
    power. Returns None for fewer than two blocks or level 0.

    `spread` is the standard deviation of log ratios in `seen` blocks (default: `blocks`). The result d applies to both
    directions. The value is computed for the ratio 1 + d, and the ratio 1 - d is easier to detect, because its
    logarithm is further from 0.
    """
    known = blocks if seen is None else seen
    if blocks < 2 or known < 2 or not 0 < level < 1:
        return None
    shift = effect(blocks, level) * likely_spread(spread, known)
    return math.expm1(shift) if shift < 700 else math.inf


def blocks_needed(margin: float, spread: float, seen: int, level: float, level_equal: float, least: int) -> int | None:
    """Returns the number of blocks that two tests need for 90% power: the detection of a ratio of 1 + margin, and the
    verdict that equal configurations are equivalent. Returns None if more than 10,000 blocks are needed. `spread`:
    standard deviation of log ratios, observed in `seen` blocks.
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

    # Start value from normal theory: n = ((z(1-level/2) + z(power)) / effect)²; t needs slightly more.
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
