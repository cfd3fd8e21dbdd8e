"""A stop rule that keeps its level: looks are declared beforehand, and share the chance of a false alarm.

`ironbench.stats.multiplicity` says what each look may spend. A stage that is added after findings were seen has nothing
left to spend. It begins a new round, judged on its own blocks alone at its own 5 %: a replication, not a longer look at
the same blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from ironbench.model.finding import Conclusion, Finding
from ironbench.model.lab import Method
from ironbench.stats.multiplicity import LEVEL, levels


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

    @property
    def level_alone(self) -> float:
        """Nominal level at this look of a claim about one configuration, which is no part of Holm's family."""
        return self.level(LEVEL, 2)


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


def decided(findings: Sequence[Finding], look: int, looks: int) -> bool:
    """Whether to stop after look `look` of `looks`: it was the last, or every declared comparison has its verdict."""
    if look >= looks:
        return True
    declared = [finding for finding in findings if finding.decides]
    return bool(declared) and all(finding.conclusion is not Conclusion.CANNOT_TELL for finding in declared)
