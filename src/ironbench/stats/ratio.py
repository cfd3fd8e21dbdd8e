"""The ratio of two configurations, paired by block, with its confidence interval and tests.

A block contains one trial of each configuration, so that both run under similar conditions. In the ratio within a
block, any drift that is slower than a block cancels out (Kalibera and Jones, "Rigorous Benchmarking in Reasonable
Time", ISMM 2013). Logarithms of ratios are averaged. If the two configurations are swapped, only the sign of the result
changes. Student's t is applied to the logarithms (Student, "The Probable Error of a Mean", Biometrika 6, 1908).
Percentiles are calculated within each trial before pairing, because the percentile of pooled blocks would not describe
any block.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ironbench.stats.intervals import half_width_apart, t_above, t_quantile, t_two_sided


@dataclass(frozen=True, slots=True)
class PairedRatios:
    """Statistics of the logarithms of the ratios of all blocks."""

    blocks: int
    mean: float
    """Mean of the log ratios."""
    spread: float
    """Standard deviation of log ratios between blocks. NaN for one block."""
    resolution: float = 0.0
    """Maximum error of a log ratio caused by rounding of its two values. Blocks with the same rounded values have the
    same error, so repeats do not reduce it. Therefore, only the part of a difference that exceeds the resolution
    counts."""

    @property
    def ratio(self) -> float:
        """Geometric mean of the ratios of the blocks."""
        return math.exp(self.mean)

    @property
    def error(self) -> float:
        """Standard error of `mean`, which is at least the error that uniform rounding would cause (variance w²/12 of
        each value)."""
        return max(self.spread, self.resolution / math.sqrt(6)) / math.sqrt(self.blocks)

    def interval(self, level: float) -> tuple[float, float]:
        """Returns the two-sided confidence interval of the ratio. In a fraction `level` of labs, it does not contain
        the true ratio. Returns (0, inf) for fewer than two blocks."""
        if self.blocks < 2 or not 0 < level < 1:
            return 0.0, math.inf
        half = t_quantile(1 - level / 2, self.blocks - 1) * self.error + self.resolution
        return _exp(self.mean - half), _exp(self.mean + half)

    def with_interval(self, level: float, least: int = 2) -> tuple[float, float, float]:
        """Returns the ratio and the bounds of its confidence interval. The bounds are 0 and inf if there are fewer than
        `least` blocks."""
        low, high = self.interval(level) if self.blocks >= least else (0.0, math.inf)
        return self.ratio, low, high

    def p_equal(self) -> float:
        """Returns the two-sided p value of the hypothesis that the ratio is 1."""
        if self.blocks < 2:
            return 1.0
        return t_two_sided(_over(max(abs(self.mean) - self.resolution, 0.0), self.error), self.blocks - 1)

    def p_apart(self, margin: float) -> float:
        """Returns the p value of the hypothesis that the ratio is outside the range from 1/(1+margin) to 1+margin. This
        is the larger p value of two one-sided tests (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15,
        1987)."""
        if self.blocks < 2:
            return 1.0
        bound = math.log1p(margin) - self.resolution
        return t_above(_over(bound - abs(self.mean), self.error), self.blocks - 1)


def paired(ratios: Sequence[float], resolution: float = 0.0) -> PairedRatios:
    """Computes the statistics of at least one ratio. Raises ValueError unless all ratios are above 0. `resolution`: see
    `PairedRatios`."""
    if not ratios or any(not 0 < ratio < math.inf for ratio in ratios):
        raise ValueError("ratios must be positive numbers, one at least")
    logs = [math.log(ratio) for ratio in ratios]
    spread = statistics.stdev(logs) if len(logs) > 1 else math.nan
    return PairedRatios(len(logs), statistics.fmean(logs), spread, resolution)


def unpaired(a: Sequence[float], b: Sequence[float], level: float) -> tuple[float, float, float]:
    """Compares unpaired values. Returns the ratio of B's geometric mean to A's geometric mean, and the bounds of its
    confidence interval. This is Welch's t interval for the difference of the mean logarithms. The bounds are 0 and
    infinity if a side has fewer than two values. Raises ValueError unless each side has a value and all values are
    above 0.
    """
    if not a or not b or any(not 0 < value < math.inf for value in (*a, *b)):
        raise ValueError("values must be positive numbers, one at least on each side")
    logs = [[math.log(value) for value in side] for side in (a, b)]
    centre = statistics.fmean(logs[1]) - statistics.fmean(logs[0])
    if min(map(len, logs)) < 2:
        return math.exp(centre), 0.0, math.inf
    half = half_width_apart(logs[0], logs[1], level)
    return math.exp(centre), _exp(centre - half), _exp(centre + half)


def _over(value: float, error: float) -> float:
    """Returns value / error. If the error is 0, returns infinity with the sign of the value; if the value is also 0,
    returns 0."""
    if error > 0:
        return value / error
    return math.copysign(math.inf, value) if value else 0.0


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf
