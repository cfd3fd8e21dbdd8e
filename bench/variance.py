"""What the noise of a block by slices is made of: starts of the servers, slow and fast noise of the machine, state.

From the blocks of `python -m bench slices`: two equal servers, started anew in each block, slices in turn. With y the
log throughput of a slice, d the difference of the two servers' slices of one rotation:

- start: variance from block to block of a block's mean d, less what its slices explain, for one server (a one-way
  analysis of variance with random effects: Searle, Casella and McCulloch, "Variance Components", 1992, 3.5)
- slow: covariance of neighbouring slices of a server within its block, less that of its state
- state: variance of the mean course of all blocks, slice by slice: after a start, through checkpoints
- fast: the rest of the variance of a slice
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from bench.figures import said
from bench.series import asked
from bench.slices import Block, block, works
from ironbench.experiment.slices.turn import Slice
from ironbench.experiment.slices.turns import SLICES
from ironbench.stats.slices import autocorrelation


@dataclass(frozen=True, slots=True)
class Parts:
    """Variances of log throughput, for one server."""

    start: float
    slow: float
    fast: float
    state: float
    autocorrelation: float
    """Of the differences of two servers, lag 1, mean of the blocks; what n slices without any show, about -1/n
    (Kendall, Biometrika 41, 1954), is taken off."""


def courses(blocks: Sequence[Block]) -> np.ndarray:
    """Log throughput by block, server and slice."""
    return np.array([[_course(one, record.id) for record in one.records] for one in blocks])


def _course(of: Block, record: str) -> list[float]:
    (file,) = of.directory.path.glob(f"**/{record}/{SLICES}")
    slices = msgspec.json.decode(file.read_bytes(), type=list[Slice])
    return [math.log(one.transactions / one.length_s) for one in slices if not one.dropped]


def parts(y: np.ndarray) -> Parts:
    """Of `courses`."""
    blocks, _, slices = y.shape
    d = y[:, 0] - y[:, 1]
    within = float(np.mean(np.var(d, axis=1, ddof=1)))
    start = (float(np.var(d.mean(axis=1), ddof=1)) - within / slices) / 2
    centred = y - y.mean(axis=2, keepdims=True)
    whole = float(np.mean(np.sum(centred**2, axis=2) / (slices - 1)))
    course = centred.mean(axis=(0, 1))
    state = float(np.sum(course**2) / (slices - 1)) - whole / (2 * blocks)
    # Deviations from a block's own mean are less alike than what they are deviations of: by whole / slices.
    neighbours = float(np.mean(centred[:, :, 1:] * centred[:, :, :-1])) + whole / slices
    state = max(0.0, state)
    slow = min(max(0.0, neighbours - state), whole)
    each = [autocorrelation(one) for one in d]
    return Parts(max(0.0, start), slow, max(0.0, whole - slow - state), state, float(np.mean(each)) + 1 / slices)


def main() -> None:
    pairs = asked("IRONBENCH_BENCH_PAIRS", 40)
    for name in works():
        kept = [one for number in range(pairs) if (one := block(name, "slices", number)) is not None]
        if len(kept) < 3:
            continue
        found = parts(courses(kept))
        for part in ("start", "slow", "fast", "state"):
            said(f"{name}, {len(kept)} blocks: {part}", f"{math.sqrt(getattr(found, part)):.1%}")
        said(f"{name}: autocorrelation of the slices' log ratios", f"{found.autocorrelation:.2f}")
