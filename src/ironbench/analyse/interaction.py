"""Whether two changes together do more or less than the product of what each does alone.

In a full design a block has measured both changes, one alone, the other alone, and neither. Its interaction ratio is
(both · neither) / (one · other): 1 where effects multiply (Box, Hunter and Hunter, Statistics for Experimenters, 1978,
ch. 10, with ratios in place of differences). Its logarithm is averaged over blocks like that of any ratio. It is told
without a verdict: labs decide by their declared comparisons.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ironbench.model.lab import Factor, Lab
from ironbench.model.record import Record
from ironbench.record.progress import by_place
from ironbench.stats.ratio import paired

_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Interaction:
    """Two levels of two factors, the other factors at their first level."""

    metric: str
    levels: Mapping[str, str]
    """The two factors, each with its level."""
    cells: tuple[str, str, str, str]
    """Both, one alone, the other alone, neither."""
    ratio: float
    low: float
    high: float
    """Interval at 95 %."""
    blocks: int
    """In which all four were measured."""

    @property
    def name(self) -> str:
        return " × ".join(f"{factor}={level}" for factor, level in self.levels.items())


def interactions(lab: Lab, records: Sequence[Record]) -> tuple[Interaction, ...]:
    """Of every pair of levels that some block measured in all four cells; none unless the design is full."""
    if lab.design != "full":
        return ()
    values = _values(lab.method.metric, records)
    found = []
    for levels, cells in _fours(lab):
        blocks = sorted({block for _, block in values})
        ratios = [
            values[cells[0], block] * values[cells[3], block] / (values[cells[1], block] * values[cells[2], block])
            for block in blocks
            if all((cell, block) in values for cell in cells)
        ]
        if ratios:
            result = paired(ratios)
            found.append(
                Interaction(lab.method.metric, levels, cells, result.ratio, *result.interval(_LEVEL), result.blocks)
            )
    return tuple(found)


def _values(metric: str, records: Sequence[Record]) -> dict[tuple[str, int], float]:
    found = {}
    for place, attempts in by_place(records).items():
        usable = [record for record in attempts if record.status.comparable]
        value = usable[0].metrics.get(metric, 0.0) if usable else 0.0
        if 0 < value < float("inf"):
            found[place] = value
    return found


def _fours(lab: Lab) -> Iterator[tuple[dict[str, str], tuple[str, str, str, str]]]:
    names = {frozenset(setup.cell.levels.items()): setup.cell.name for setup in lab.setups if not setup.skipped}
    first = {factor.name: factor.levels[0] for factor in lab.factors}

    def cell(levels: dict[str, str]) -> str | None:
        return names.get(frozenset((first | levels).items()))

    for one, other in itertools.combinations(lab.factors, 2):
        for a, b in _beyond_first(one, other):
            both, first_alone = cell({one.name: a, other.name: b}), cell({one.name: a})
            other_alone, neither = cell({other.name: b}), cell({})
            if both and first_alone and other_alone and neither:
                yield {one.name: a, other.name: b}, (both, first_alone, other_alone, neither)


def _beyond_first(one: Factor, other: Factor) -> Iterator[tuple[str, str]]:
    return itertools.product(one.levels[1:], other.levels[1:])
