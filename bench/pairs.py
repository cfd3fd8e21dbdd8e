"""Interleaved measurements of two alternatives, A B B A …, and their ratio with its 95% confidence interval.

The interval is Student's t on the logarithms of the ratios of adjacent runs: both runs of a pair have the same
conditions, so drift cancels out, and ratios are symmetric in logarithms (Kalibera and Jones, "Rigorous Benchmarking in
Reasonable Time", 2013).
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

# Two-sided 97.5% quantiles of Student's t by degrees of freedom (any statistics table).
T975 = {
    2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 11: 2.201, 12: 2.179,
    13: 2.160, 14: 2.145, 15: 2.131, 16: 2.120, 17: 2.110, 18: 2.101, 19: 2.093, 24: 2.064, 29: 2.045,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ratio:
    """Geometric mean of A/B over `n` pairs, with its 95% confidence interval."""

    centre: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.centre:.3f} (95 % interval {self.low:.3f} to {self.high:.3f}, {self.n} pairs)"


def ratio(a: Sequence[float], b: Sequence[float]) -> Ratio:
    logs = [math.log(x / y) for x, y in zip(a, b, strict=True)]
    n = len(logs)
    t = T975[max(df for df in T975 if df <= n - 1)]
    half = t * statistics.stdev(logs) / math.sqrt(n)
    mean = statistics.fmean(logs)
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half), n)


def interleaved(n: int, a: Callable[[], T], b: Callable[[], T]) -> tuple[list[T], list[T]]:
    """Returns `n` results of each alternative, measured in the order A B, B A, A B, …"""
    of_a, of_b = in_turn(n, a, b)
    return of_a, of_b


def in_turn(n: int, *ways: Callable[[], T]) -> list[list[T]]:
    """Returns `n` results of each alternative, measured in the order A B C, C B A, A B C, …"""
    found: list[list[T]] = [[] for _ in ways]
    for turn in range(n):
        order = range(len(ways)) if turn % 2 == 0 else reversed(range(len(ways)))
        for which in order:
            found[which].append(ways[which]())
        sys.stderr.write(f"\r  pair {turn + 1} of {n} ")
    sys.stderr.write("\r" + " " * 30 + "\r")
    return found
