"""Slices against trials in ten hours of different noise: the same blocks as `python -m bench slices`.

An hour is four blocks of each method and workload, in random order; with four workloads it takes eight minutes here. In
four hours nothing runs beside, in three another process computes in bursts, in three it copies memory in bursts, in an
order that was drawn.

`IRONBENCH_BENCH_HOURS=2` measures two hours, `IRONBENCH_BENCH_WORKLOADS=select-only,tpcb-like` these two.
"""

from __future__ import annotations

import itertools
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from scipy import special

from bench.figures import Between, at_most, said
from bench.series import asked
from bench.slices import METHODS, Block, block, works

HOURS = ("nothing",) * 4 + ("bursts of CPU time",) * 3 + ("bursts of copies",) * 3
"""What runs beside."""
BLOCKS = 4
"""Of each method and workload in an hour."""
FIRST = 100
"""Numbers below are those of `bench slices`."""
BURST_S = 4.0
"""Mean length of a burst and of a pause, both exponential: as long as a few slices, and shorter than a trial."""
COPIED_BYTES = 64 << 20
"""More than a cache holds."""

Measured = dict[tuple[str, str], list[Block]]
"""By workload and method."""


def hour(number: int, beside: str) -> Measured:
    """Measured now, as far as it was not before."""
    dice, kept = random.Random(number), Measured()
    with _beside(beside, number):
        for turn in range(BLOCKS):
            for name in works():
                for method in dice.sample(METHODS, len(METHODS)):
                    if (one := block(name, method, FIRST + number * BLOCKS + turn)) is not None:
                        kept.setdefault((name, method), []).append(one)
    return kept


def cost(blocks: Sequence[Block]) -> float:
    """Variance of a block's log ratio times its seconds. Two equal systems differ by nothing in truth: no mean is taken
    off."""
    return statistics.fmean(one.log_ratio**2 for one in blocks) * statistics.fmean(one.took_s for one in blocks)


def time_ratio(hours: Sequence[Measured], names: Sequence[str]) -> Between:
    """Time of slices over trials for the same difference: the geometric mean of the workloads, with its 90 % interval.

    The logarithm of a mean of n squares of normal noise has the variance ψ₁(n/2): that of log chi-squared
    (Bartlett and Kendall, Supplement to the Journal of the Royal Statistical Society 8, 1946).
    """
    logs, variances = list[float](), list[float]()
    for name in names:
        both = [[one for kept in hours for one in kept.get((name, method), ())] for method in METHODS]
        if not all(both):
            continue
        logs.append(math.log(cost(both[0]) / cost(both[1])))
        variances.append(sum(float(special.polygamma(1, len(blocks) / 2)) for blocks in both))
    if not logs:
        return Between(math.nan, math.nan, math.nan)
    centre, half = statistics.fmean(logs), 1.645 * math.sqrt(sum(variances)) / len(logs)
    return Between(math.exp(centre), math.exp(centre - half), math.exp(centre + half))


def main() -> None:
    order = random.Random(10).sample(HOURS, len(HOURS))[: asked("IRONBENCH_BENCH_HOURS", len(HOURS))]
    hours, ratios = list[Measured](), list[Between]()
    for number, beside in enumerate(order):
        hours.append(hour(number, beside))
        ratios.append(time_ratio(hours[-1:], works()))
        said(f"hour {number + 1}, beside: {beside}: time of slices over trials", str(ratios[-1]))
    for name in works():
        one = time_ratio(hours, [name])
        said(f"{name}, all hours: time of slices over trials, same difference", one, at_most(1 / 3, "≤ 1/3"), str(one))
    whole = time_ratio(hours, works())
    said(
        "all workloads and hours: time of slices over trials, same difference",
        whole,
        at_most(1 / 3, "≤ 1/3"),
        str(whole),
    )
    middle = median(ratios)
    said(f"median of {len(ratios)} hours", middle, at_most(1 / 3, "≤ 1/3"), str(middle))
    worst = max(ratios, key=lambda one: one.ratio)
    said(f"largest of {len(ratios)} hours", worst.ratio, at_most(1.1), str(worst))


def median(ratios: Sequence[Between]) -> Between:
    """With the interval between two order statistics: of ten values the third and the eighth, which hold the median
    with 89 %, by the binomial distribution."""
    ordered = sorted(one.ratio for one in ratios)
    out = max(0, round(len(ordered) * 0.3) - 1)
    return Between(statistics.median(ordered), ordered[out], ordered[-1 - out])


@contextmanager
def _beside(kind: str, seed: int) -> Iterator[None]:
    """Another process at work meanwhile."""
    if kind == "nothing":
        yield
        return
    process = subprocess.Popen([sys.executable, "-m", "bench.hours", kind, str(seed), str(os.getpid())])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def work_in_bursts(kind: str, seed: int, parent: int) -> None:
    """Until the process that began it is gone."""
    dice, source = random.Random(seed), np.ones(COPIED_BYTES, dtype=np.uint8)
    target = np.empty_like(source)
    for resting in itertools.cycle((False, True)):
        ends = time.monotonic() + dice.expovariate(1 / BURST_S)
        while time.monotonic() < ends:
            if os.getppid() != parent:
                return
            if resting:
                time.sleep(min(0.1, max(0.0, ends - time.monotonic())))
            elif kind == "bursts of copies":
                np.copyto(target, source)
            else:
                sum(range(10_000))


if __name__ == "__main__":
    work_in_bursts(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
