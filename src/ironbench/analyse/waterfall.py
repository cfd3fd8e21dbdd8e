"""From one cell to another: which part of a transaction's time the difference comes from.

Every trial gives its seconds per transaction in each part; the two cells' are paired by block, because a block shares
the machine's mood, and Student's t applies to the differences (`stats.ratio` says more). Steps are differences of
seconds, not ratios, so that they add up to the whole difference exactly. With fewer than two common blocks only the
error of sampling is known, which is less than the whole error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from ironbench.analyse.bottleneck import TimeSpent, times, told_apart, where_time_goes
from ironbench.model.parts import PARTS
from ironbench.model.record import Record
from ironbench.stats.intervals import half_width

LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Step:
    """What one part contributes to the difference; negative: it takes less time in the second cell."""

    part: str
    delta_s: float
    low_s: float
    high_s: float
    """95 % interval."""

    @property
    def clear(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.low_s > 0 or self.high_s < 0


@dataclass(frozen=True, slots=True)
class Waterfall:
    """Seconds of a client's time per transaction, from the first cell's to the second's."""

    before: str
    after: str
    before_s: float
    after_s: float
    steps: tuple[Step, ...]
    """In the order of `PARTS`, those that are nothing in both left out; they sum to the whole difference."""
    blocks: int
    """Common ones, that the steps are means of."""
    method: str

    @property
    def sentence(self) -> str:
        """The largest clear step in words."""
        whole = self.after_s - self.before_s
        clear = [step for step in self.steps if step.clear]
        if not clear:
            return f"No part's time differs clearly between {self.before} and {self.after}."
        most = max(clear, key=lambda step: abs(step.delta_s))
        more = "more" if most.delta_s > 0 else "less"
        part = f"{most.part}: {_ms(abs(most.delta_s))} {more} ({_ms(most.low_s)} to {_ms(most.high_s)})"
        return f"A transaction takes {_ms(abs(whole))} {'more' if whole > 0 else 'less'} of a client's time. {part}."


def waterfall(before: Sequence[Record], after: Sequence[Record]) -> Waterfall | None:
    """Of the comparable trials of two cells; None where backends were not observed in one of them."""
    a, b = (_by_block(records) for records in (before, after))
    spent = where_time_goes(before), where_time_goes(after)
    if spent[0] is None or spent[1] is None:
        return None
    common = sorted(a.keys() & b.keys())
    if len(common) < 2:
        return _from_sampling(spent[0], spent[1], len(common))
    parts = [name for name in PARTS if any(name in one[block] for one in (a, b) for block in common)]
    steps = tuple(
        _step(name, [b[block].get(name, 0.0) - a[block].get(name, 0.0) for block in common]) for name in parts
    )
    whole = [fmean(sum(one[block].values()) for block in common) for one in (a, b)]
    method = f"t intervals of the differences of {len(common)} blocks"
    return Waterfall(spent[0].cell, spent[1].cell, whole[0], whole[1], steps, len(common), method)


def _by_block(records: Sequence[Record]) -> dict[int, dict[str, float]]:
    """The last attempt of each block."""
    return {record.block: times(record) for record in told_apart(records)[0]}


def _step(part: str, differences: Sequence[float]) -> Step:
    mean, half = fmean(differences), half_width(differences, LEVEL)
    return Step(part, mean, mean - half, mean + half)


def _from_sampling(a: TimeSpent, b: TimeSpent, blocks: int) -> Waterfall:
    steps = []
    for name in PARTS:
        (from_s, from_half), (to_s, to_half) = (_spread(spent, name) for spent in (a, b))
        if from_s or to_s:
            delta, half = to_s - from_s, math.hypot(from_half, to_half)
            steps.append(Step(name, delta, delta - half, delta + half))
    method = "error of sampling alone: fewer than two blocks have both cells"
    return Waterfall(a.cell, b.cell, a.total_s, b.total_s, tuple(steps), blocks, method)


def _spread(spent: TimeSpent, name: str) -> tuple[float, float]:
    """A part's seconds, and half of their interval."""
    part = next((part for part in spent.parts if part.name == name), None)
    return (part.time_s, (part.high - part.low) / 2 * spent.total_s) if part else (0.0, 0.0)


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"
