"""A stopping rule with a fixed error rate: interim analyses are declared in advance and share alpha.

`ironbench.stats.multiplicity` computes the alpha that each interim analysis may spend. A stage added after findings
were seen has no alpha left, so it starts a new round with its own alpha of 5%, judged on its own blocks only. This is a
replication, not another interim analysis of the same blocks.
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
class InterimAnalysis:
    """Position of an interim analysis in its round."""

    number: int
    """Number of the analysis in its round, from 1."""
    looks: int
    """Number of analyses declared in its round."""
    first_stage: int
    last_stage: int
    """First and last stage whose blocks are analysed."""
    planned: tuple[int, ...]
    """Cumulative number of blocks after each analysis of the round."""
    round: int = 1

    def level(self, share: float, sides: int) -> float:
        """Nominal alpha of a test at this analysis, if all analyses together may spend `share`; 0 means no decision."""
        return levels(share, self.planned, sides)[self.number - 1]

    @property
    def level_alone(self) -> float:
        """Nominal alpha at this analysis for a claim about one configuration, which Holm's correction does not
        count."""
        return self.level(LEVEL, 2)


def at(method: Method, look: int) -> InterimAnalysis:
    """Returns the analysis after stage number `look`, or after the last stage if there are fewer."""
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
    return InterimAnalysis(numbers.index(last) + 1, len(planned), first, last, planned, rounds)


def earlier(method: Method, look: int) -> tuple[int, ...]:
    """Returns the last stage of each round before the round of stage `look`."""
    return tuple(stage.number - 1 for stage in method.stages if stage.added and stage.number <= look)


def decided(findings: Sequence[Finding], look: int, looks: int) -> bool:
    """Whether to stop after analysis `look` of `looks`: it was the last, or every declared comparison has a verdict."""
    if look >= looks:
        return True
    declared = [finding for finding in findings if finding.decides]
    return bool(declared) and all(finding.conclusion is not Conclusion.CANNOT_TELL for finding in declared)
