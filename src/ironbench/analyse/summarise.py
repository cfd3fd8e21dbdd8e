"""The trials of one cell as one number with its doubt."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

# 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom: Fisher & Yates, Statistical Tables, table III.
_T975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_Z975 = 1.959964


@dataclass(frozen=True, slots=True)
class Summary:
    """n values of one metric in one cell. Units are those of the metric."""

    n: int
    centre: float
    """The median: one bad trial does not move it."""
    mean: float
    low: float
    high: float
    """Smallest and largest value seen."""
    interval: tuple[float, float] | None
    """95 % t interval of the mean, from 3 values on; it assumes independent, roughly normal values."""

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
        if self.interval is None:
            return f"n={self.n}: range only"
        return f"n={self.n}: range and 95 % t interval of the mean"


def t_quantile(freedom: int) -> float:
    """97.5 % quantile of Student's t; beyond the table by Cornish–Fisher (Abramowitz & Stegun 26.7.5), error < 1e-3."""
    if freedom < 1:
        raise ValueError("a t interval needs at least two values")
    if freedom <= len(_T975):
        return _T975[freedom - 1]
    z = _Z975
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def summarise(values: Sequence[float]) -> Summary | None:
    """None when there is no finite value: a number that was not measured is not a zero."""
    finite = [float(value) for value in values if math.isfinite(value)]
    if not finite:
        return None
    mean = statistics.fmean(finite)
    interval = None
    if len(finite) >= 3:
        half = t_quantile(len(finite) - 1) * statistics.stdev(finite) / math.sqrt(len(finite))
        interval = (mean - half, mean + half)
    return Summary(len(finite), statistics.median(finite), mean, min(finite), max(finite), interval)


def overlap(a: Summary, b: Summary) -> bool:
    """Whether the ranges of two summaries have a value in common."""
    return a.low <= b.high and b.low <= a.high
