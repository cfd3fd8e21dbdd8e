"""What a comparison of two cells says, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Conclusion(StrEnum):
    """How a comparison ends. `FASTER` means better in the metric's own direction, whatever that is."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    CANNOT_TELL = "cannot tell"


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
    """Two-sided, of ratio = 1, after correction for the number of comparisons."""
    method: str
    """In words, e.g. `t interval on log ratios of 6 blocks, look 1 of 2`."""
    advice: str = ""
    """What it would take to tell, when it cannot."""
    warnings: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    """Blocks that did not enter, and why."""
    decides: bool = True
    """Whether the lab declared it: one of its comparisons on its metric, or what a claim is about. Others carry no
    verdict: their conclusion is `CANNOT_TELL` and their p is None."""
    bootstrap: tuple[float, float] | None = None
    """A second opinion on the interval from 20 blocks on, free of the assumption of normal log ratios."""
    barred: str = ""
    """Why these trials may carry no verdict whatever the interval says, e.g. CPU time of suspect trials."""

    @property
    def blocks(self) -> int:
        return len(self.ratios)
