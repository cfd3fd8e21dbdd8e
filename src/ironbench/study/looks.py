"""A stopping rule with a fixed error rate: interim analyses are declared in advance and share alpha.

`ironbench.stats.multiplicity` computes the alpha that each interim analysis may spend. If a stage is added after
findings were seen, no alpha is left. The stage therefore starts a new round with a separate alpha of 5%, which is
judged only by its own blocks. Such a round is a replication, not another interim analysis of the same blocks.
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
    """Position of an interim analysis within its round."""

    number: int
    """1-based number of the analysis within its round."""
    looks: int
    """Number of analyses that were declared for the round."""
    first_stage: int
    last_stage: int
    """First and last stage whose blocks are analysed."""
    planned: tuple[int, ...]
    """Cumulative number of blocks after each analysis of the round."""
    round: int = 1

    def level(self, share: float, sides: int) -> float:
        """Returns the nominal alpha of a test at this analysis, if all analyses together may spend `share`; 0 means no
        decision."""
        return levels(share, self.planned, sides)[self.number - 1]

    @property
    def level_alone(self) -> float:
        """Nominal alpha at this analysis for a claim about one configuration, because such claims do not count in
        Holm's correction."""
        return self.level(LEVEL, 2)


def at(method: Method, look: int) -> InterimAnalysis:
    """Returns the analysis after stage number `look`, or after the last stage if there are fewer stages."""
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
    """Returns whether to stop after analysis `look` of `looks`: it was the last analysis, or every declared comparison
    has a verdict."""
    if look >= looks:
        return True
    declared = [finding for finding in findings if finding.decides]
    return bool(declared) and all(finding.conclusion is not Conclusion.CANNOT_TELL for finding in declared)
