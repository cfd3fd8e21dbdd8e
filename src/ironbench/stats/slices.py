"""Computes the variation between the slices of one system in one block, and the throughput lost at the start of
slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ironbench.stats.intervals import wilson

FEW = 50
"""Minimum number of transactions of active clients for a statement about lost time. With fewer transactions, even a
loss of half of the early time can hardly be distinguished from chance."""


@dataclass(frozen=True, slots=True)
class StartTransactions:
    """Two numbers of transactions, and the time in which each was counted. Early transactions ended shortly after the
    start of a slice, and late transactions ended later."""

    early: int
    late: int
    early_s: float
    late_s: float

    def __add__(self, other: StartTransactions) -> StartTransactions:
        return StartTransactions(
            self.early + other.early, self.late + other.late, self.early_s + other.early_s, self.late_s + other.late_s
        )

    def surely_lost(self, level: float) -> float:
        """Returns a lower bound of the fraction of the early time that was lost. The bound exceeds the true fraction
        with a probability of at most `level`.

        The counts are treated as two Poisson processes: given their sum, the early count is binomial (Przyborowski and
        Wilenski, "Homogeneity of results in testing samples from Poisson series", Biometrika 31, 1940). To first order,
        the standard error of early / late is that ratio times sqrt(1/early + 1/late).
        """
        both = self.early + self.late
        if not both:
            return 0.0
        _, most = wilson(self.early / both, both, NormalDist().inv_cdf(1 - level))
        return max(0.0, 1 - most / (1 - most) * self.late_s / self.early_s) if most < 1 else 0.0


def figures(rates: Sequence[float]) -> dict[str, float]:
    """Returns the metrics that a record with slices contains: the number of slices, and the SD of the logarithms of
    their rates. `rates`: throughput of each slice."""
    found = {"slices": float(len(rates))}
    if len(rates) < 3 or min(rates) <= 0:
        return found
    return found | {"slice_spread": float(np.std(np.log(rates), ddof=1))}
