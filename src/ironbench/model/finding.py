"""The finding of a comparison of two cells, and how runs of the same vary on a machine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from ironbench.model.note import Note
from ironbench.model.record import TRIALS

NOT_AT_BOTH_ENDS = "no-verdict-at-both-ends"
"""Code of `Finding.barred` where the ratio changed over the blocks so that no verdict holds before and after."""


class Conclusion(StrEnum):
    """How a comparison ends. `FASTER` means better in the metric's own direction, whatever that is."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    CANNOT_TELL = "cannot tell"


LEAST_BLOCKS_SHOWN = 3
"""Blocks from which on a page gives the interval: that of two has one degree of freedom and spans decades."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Two cells compared on one metric, paired by block."""

    metric: str
    """Catalogue name."""
    cell: str
    baseline: str
    ratios: tuple[tuple[int, float], ...]
    """(block, cell's value over the baseline's) of every complete block."""
    ratio: float
    """Geometric mean of `ratios`."""
    low: float
    high: float
    """Interval of the ratio at `confidence`."""
    confidence: float
    """After spending for looks; 0.95 where there was one look."""
    conclusion: Conclusion
    margin: float
    detectable: float | None
    """Smallest relative difference that this many blocks with this spread would find with 90 % power; None: unknown."""
    p: float | None
    """Two-sided, of ratio = 1, after correction for the number of comparisons; None: too few blocks for a verdict."""
    method: Note
    """How the interval was computed."""
    advice: Note | None = None
    """What it would take to decide; None if it is decided."""
    warnings: tuple[Note, ...] = ()
    dropped: tuple[Note, ...] = ()
    """Blocks that did not enter, and why."""
    decides: bool = True
    """Whether the lab declared it: one of its comparisons on its metric, or what a claim is about. Others carry no
    verdict: their conclusion is `CANNOT_TELL` and their p is None."""
    barred: Note | None = None
    """Why these trials may carry no verdict whatever the interval says, e.g. CPU time of suspect trials."""

    lost: tuple[int, int] = (0, 0)
    """Blocks in which the cell, and in which its baseline, has no usable trial: failed, invalid, or without a value."""

    changed: Note | None = None
    """How the ratio itself changed over the blocks."""
    ends: tuple[float, float] | None = None
    """The ratio before and after that change; None where it did not change."""

    shares: tuple[float, float] | None = None
    """Medians of baseline and cell, shown in place of a ratio: shares of which one is next to nothing."""

    @property
    def blocks(self) -> int:
        return len(self.ratios)

    @property
    def unequal_losses(self) -> bool:
        """Whether one side lost more blocks than the other. The blocks that are left are then no fair sample: a version
        that crashes under pressure is compared only where there was none."""
        return self.lost[0] != self.lost[1]


def floor_of(spread: float) -> float:
    """Relative difference that two single runs of the same stay below in 95 % of cases; `spread`: standard deviation of
    the log ratio from block to block."""
    return math.expm1(_NORMAL_95 * spread)


_NORMAL_95 = 1.96
"""Two-sided 95 % quantile of the normal distribution."""


@dataclass(frozen=True, slots=True)
class Noise:
    """How runs of the same vary on one machine under one workload, for one metric: what A against A showed."""

    machine: str
    """Content key of the machine's fingerprint."""
    work: str
    metric: str
    """Catalogue name."""
    blocks: int
    spread: float
    """Standard deviation of the log ratio from block to block."""
    floor: float
    """Relative difference of two single runs of the same configuration that 95 % of such pairs stay below: a property
    of the machine and the work, not of how many blocks measured it."""
    measured_at: str
    """UTC, ISO 8601, of the first trial."""
    trial_s: float = 30.0
    """Measured time of its trials: longer ones are less noisy."""
    method: str = TRIALS
    """As `Record.method`: each method has its own noise."""

    @property
    def source(self) -> str:
        """Where it was measured, in words."""
        by = "" if self.method == TRIALS else f" by {self.method}"
        return f"A against A, {self.blocks} blocks of {self.work}{by} on {self.measured_at[:10]}"
