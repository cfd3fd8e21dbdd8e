"""The trials of one cell as one number with its doubt.

The interval is Student's (Biometrika 6, 1908); below three values a range says more than an interval would.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ironbench.stats.intervals import t_quantile

_LEAST = 3
"""Values from which on an interval says more than a range."""


@dataclass(frozen=True, slots=True)
class Summary:
    """n values of one metric in one cell. Units are those of the metric."""

    n: int
    centre: float
    """The median: one bad trial does not move it. Of a percentile of several trials: that of all their transactions
    together (`ironbench.analyse.pooled`)."""
    mean: float
    low: float
    high: float
    """Smallest and largest value seen."""
    deviation: float
    """Standard deviation; 0 for one value."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % t interval of the mean, from 3 values on; it assumes independent, roughly normal values."""
        if self.n < _LEAST:
            return None
        half = t_quantile(0.975, self.n - 1) * self.deviation / math.sqrt(self.n)
        return self.mean - half, self.mean + half

    @property
    def spread(self) -> float:
        """Largest minus smallest as a share of the centre; 0 for one value, infinite around a centre of 0."""
        if self.high == self.low:
            return 0.0
        return (self.high - self.low) / abs(self.centre) if self.centre else math.inf

    @property
    def doubt(self) -> str:
        """What this number rests on, in words."""
        if self.n == 1:
            return "n=1: no spread"
        if self.n < _LEAST:
            return f"n={self.n}: range only"
        return f"n={self.n}: range and 95 % t interval of the mean"


def summarise(values: Sequence[float]) -> Summary | None:
    """None when there is no finite value: a number that was not measured is not a zero."""
    finite = [float(value) for value in values if math.isfinite(value)]
    if not finite:
        return None
    deviation = statistics.stdev(finite) if len(finite) > 1 else 0.0
    return Summary(
        len(finite), statistics.median(finite), statistics.fmean(finite), min(finite), max(finite), deviation
    )


def overlap(a: Summary, b: Summary) -> bool:
    """Whether the ranges of two summaries have a value in common."""
    return a.low <= b.high and b.low <= a.high
