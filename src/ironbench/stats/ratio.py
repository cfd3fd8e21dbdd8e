"""The ratio of two cells, paired by block, with its interval and its tests.

A block holds one trial of each cell, so that both share the machine's mood: the ratio within the block cancels a drift
that is slower than a block (Kalibera and Jones, "Rigorous Benchmarking in Reasonable Time", ISMM 2013). Ratios are
averaged as logarithms, where swapping the two cells changes the sign only, and Student's t applies to those logarithms
(Student, "The Probable Error of a Mean", Biometrika 6, 1908). A percentile is taken within each trial first and the
trials' percentiles are paired then: the percentile of pooled blocks would be that of no block.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ironbench.stats.intervals import half_width_apart, t_above, t_quantile, t_two_sided


@dataclass(frozen=True, slots=True)
class Paired:
    """What the logarithms of the blocks' ratios come to."""

    blocks: int
    mean: float
    """Of log ratios."""
    spread: float
    """Standard deviation of log ratios from block to block; NaN for one block."""
    resolution: float = 0.0
    """Largest error of a log ratio by rounding of its two values. Blocks that read the same rounded values share it,
    so repeats do not average it out: a difference counts only as far as it exceeds the resolution."""

    @property
    def ratio(self) -> float:
        """Geometric mean of the blocks' ratios."""
        return math.exp(self.mean)

    @property
    def error(self) -> float:
        """Standard error of `mean`, at least that of values rounded uniformly (variance w²/12 of either value)."""
        return max(self.spread, self.resolution / math.sqrt(6)) / math.sqrt(self.blocks)

    def interval(self, level: float) -> tuple[float, float]:
        """Of the ratio, two-sided: it misses the true one in a share `level` of labs. (0, inf) below two blocks."""
        if self.blocks < 2 or not 0 < level < 1:
            return 0.0, math.inf
        half = t_quantile(1 - level / 2, self.blocks - 1) * self.error + self.resolution
        return _exp(self.mean - half), _exp(self.mean + half)

    def p_equal(self) -> float:
        """Two-sided p value of the hypothesis that the ratio is 1."""
        if self.blocks < 2:
            return 1.0
        return t_two_sided(_over(max(abs(self.mean) - self.resolution, 0.0), self.error), self.blocks - 1)

    def p_apart(self, margin: float) -> float:
        """P value of the hypothesis that the ratio lies outside 1/(1+margin) to 1+margin: the larger of two one-sided
        tests (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987)."""
        if self.blocks < 2:
            return 1.0
        bound = math.log1p(margin) - self.resolution
        return t_above(_over(bound - abs(self.mean), self.error), self.blocks - 1)


def paired(ratios: Sequence[float], resolution: float = 0.0) -> Paired:
    """Of at least one ratio, each above 0; ValueError. `resolution`: see `Paired`."""
    if not ratios or any(not 0 < ratio < math.inf for ratio in ratios):
        raise ValueError("ratios must be positive numbers, one at least")
    logs = [math.log(ratio) for ratio in ratios]
    spread = statistics.stdev(logs) if len(logs) > 1 else math.nan
    return Paired(len(logs), statistics.fmean(logs), spread, resolution)


def unpaired(a: Sequence[float], b: Sequence[float], level: float) -> tuple[float, float, float]:
    """B over A of values that nothing pairs: ratio of geometric means and Welch's t interval of the difference of mean
    logarithms. (ratio, 0, inf) with fewer than two values on a side. Values above 0, one at least
    on each side; ValueError."""
    if not a or not b or any(not 0 < value < math.inf for value in (*a, *b)):
        raise ValueError("values must be positive numbers, one at least on each side")
    logs = [[math.log(value) for value in side] for side in (a, b)]
    centre = statistics.fmean(logs[1]) - statistics.fmean(logs[0])
    if min(map(len, logs)) < 2:
        return math.exp(centre), 0.0, math.inf
    half = half_width_apart(logs[0], logs[1], level)
    return math.exp(centre), _exp(centre - half), _exp(centre + half)


def _over(value: float, error: float) -> float:
    """value / error, where no spread at all is perfect knowledge."""
    if error > 0:
        return value / error
    return math.copysign(math.inf, value) if value else 0.0


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf
