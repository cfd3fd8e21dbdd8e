"""A stop rule that keeps its level: looks declared beforehand, the chance of a false alarm spent on them bit by bit.

Looking at the findings after each stage and stopping at the first that pleases would raise more false alarms than one
look does. So each look spends a part of the 5 %, in proportion to the blocks that are in (Lan and DeMets, Biometrika
70, 1983; Kim and DeMets, Biometrika 74, 1987, the linear function), and looks before the sixth block spend nothing. The
levels of the looks follow from the normal distribution of the growing sum (Armitage, McPherson and Rowe, Journal of the
Royal Statistical Society A 132, 1969) and are used for t at each look's degrees of freedom (Jennison and Turnbull,
Group Sequential Methods, 2000, section 4.4).

A stage that is added after findings were seen has nothing left to spend. It begins a new round, judged on its own
blocks alone at its own 5 %: a replication, not a longer look at the same blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np

from ironbench.analyse.distributions import normal_cdf, normal_quantile
from ironbench.model.finding import Conclusion, Finding
from ironbench.model.lab import Method

LEVEL = 0.05
"""Chance of a false alarm over all looks and comparisons of a round."""
LEAST_BLOCKS = 6
"""Blocks below which nothing is decided."""
_GRID = 801
_FAR = 8.5
"""Standard deviations beyond which a normal distribution is nothing."""


@dataclass(frozen=True, slots=True)
class Look:
    """Where in its round a look stands."""

    number: int
    """1-based, in its round."""
    looks: int
    """Declared in its round."""
    first_stage: int
    last_stage: int
    """Stages whose blocks are seen now."""
    planned: tuple[int, ...]
    """Blocks in all after each look of the round."""
    round: int = 1

    def level(self, share: float, sides: int) -> float:
        """Nominal level of a test at this look when all looks together may spend `share`; 0 decides nothing."""
        return levels(share, self.planned, sides)[self.number - 1]


def at(method: Method, look: int) -> Look:
    """The look after stage number `look`; a number beyond the last stage is the last."""
    stages = [stage for stage in method.stages if stage.number <= look] or list(method.stages[:1])
    begun = [stage.number for stage in stages if stage.added] or [method.stages[0].number]
    first = begun[-1]
    later = [stage.number for stage in method.stages if stage.added and stage.number > first]
    own = [stage for stage in method.stages if first <= stage.number < min(later, default=math.inf)]
    dropped = method.dropped if first == method.stages[0].number else ()
    planned = tuple(accumulate((*(stage.blocks for stage in own), *dropped)))
    numbers = [stage.number for stage in own]
    last = stages[-1].number
    rounds = sum(1 for stage in stages[1:] if stage.added) + 1
    return Look(numbers.index(last) + 1, len(planned), first, last, planned, rounds)


def earlier(method: Method, look: int) -> tuple[int, ...]:
    """The last look of each round before that of stage number `look`, by the number of its stage."""
    return tuple(stage.number - 1 for stage in method.stages if stage.added and stage.number <= look)


@lru_cache(maxsize=1024)
def levels(share: float, planned: tuple[int, ...], sides: int = 2) -> tuple[float, ...]:
    """Nominal level of each look; together they raise a false alarm with chance `share`.

    `planned`: blocks in all after each look, growing. `sides`: 2 for two-sided tests, 1 for one-sided ones.
    """
    total = planned[-1]
    found: list[float] = []
    spent = 0.0
    before = 0
    sums: np.ndarray | None = None
    density: np.ndarray | None = None
    for blocks in planned:
        may_spend = 0.0 if blocks < LEAST_BLOCKS else share * blocks / total - spent
        if may_spend <= 0:
            bound = math.inf
        elif sums is None or density is None:
            bound = normal_quantile(1 - may_spend / sides)
        else:
            bound = _bound(sums, density, blocks, blocks - before, may_spend, sides)
        spent += may_spend
        found.append(sides * normal_cdf(-bound) if bound < math.inf else 0.0)
        sums, density = _carried_on(sums, density, before, blocks, bound, sides)
        before = blocks
    return tuple(found)


def _bound(sums: np.ndarray, density: np.ndarray, blocks: int, grown: int, share: float, sides: int) -> float:
    """z that the standardised sum crosses for the first time now with chance `share`."""
    step = float(sums[1] - sums[0])
    weights = density * step
    low, high = 0.0, _FAR
    for _ in range(30):
        z = (low + high) / 2
        edge = z * math.sqrt(blocks)
        above = sum(w * normal_cdf((s - edge) / math.sqrt(grown)) for s, w in zip(sums, weights, strict=True))
        if sides == 2:  # By symmetry as many cross below.
            above *= 2
        low, high = (z, high) if above > share else (low, z)
    return high


def _carried_on(
    sums: np.ndarray | None, density: np.ndarray | None, before: int, blocks: int, bound: float, sides: int
) -> tuple[np.ndarray, np.ndarray]:
    """Density of the sum after `blocks` blocks where no look has stopped, on a grid for the trapezoid rule."""
    edge = min(bound, _FAR) * math.sqrt(blocks)
    grid = np.linspace(-edge if sides == 2 else -_FAR * math.sqrt(blocks), edge, _GRID)
    grown = blocks - before
    scale = 1 / math.sqrt(2 * math.pi * grown)
    if sums is None or density is None:
        found = scale * np.exp(-(grid**2) / (2 * grown))
    else:
        apart = grid[:, None] - sums[None, :]
        found = scale * np.exp(-(apart**2) / (2 * grown)) @ density * float(sums[1] - sums[0])
    found[0] /= 2  # Ends count half; what is kept is the density times the rule's weight.
    found[-1] /= 2
    return grid, found


def decided(findings: Sequence[Finding], look: int, looks: int) -> bool:
    """Whether to stop after look `look` of `looks`: it was the last, or every declared comparison has its verdict."""
    if look >= looks:
        return True
    declared = [finding for finding in findings if finding.decides]
    return bool(declared) and all(finding.conclusion is not Conclusion.CANNOT_TELL for finding in declared)
