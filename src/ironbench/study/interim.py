"""A stopping rule with a fixed error rate. Interim analyses are declared in advance, and alpha is divided among them.

`ironbench.stats.multiplicity` computes the alpha that each interim analysis may spend. If a user adds a stage after
seeing the findings, no alpha is left. The stage therefore starts a new round with a separate alpha of 5%. Only the
blocks of the round itself are judged, so the round is a replication and not another interim analysis of the same
blocks.
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
    analyses: int
    """Number of analyses that were declared for the round."""
    first_stage: int
    last_stage: int
    """Last stage whose blocks are analysed; `first_stage` is the first."""
    planned: tuple[int, ...]
    """Cumulative number of blocks after each analysis of the round."""
    round: int = 1

    def level(self, share: float, sides: int) -> float:
        """Returns the nominal alpha of a test at this analysis. All analyses of the round together may spend `share`.
        If the returned alpha is 0, this analysis cannot give a verdict. `sides`: 1 for a one-sided test, 2 for a
        two-sided test."""
        return levels(share, self.planned, sides)[self.number - 1]

    @property
    def level_alone(self) -> float:
        """Nominal alpha at this analysis for a claim about one configuration. The whole alpha is used, because Holm's
        correction does not count such claims."""
        return self.level(LEVEL, 2)


def analysis_after(method: Method, last_stage: int) -> InterimAnalysis:
    """Returns the interim analysis after stage `last_stage`, or after the last stage if there are fewer stages."""
    stages = [stage for stage in method.stages if stage.number <= last_stage] or list(method.stages[:1])
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


def ends_of_earlier_rounds(method: Method, last_stage: int) -> tuple[int, ...]:
    """Returns the last stage of every earlier round, that is, of every round before the one that contains stage
    `last_stage`."""
    return tuple(stage.number - 1 for stage in method.stages if stage.added and stage.number <= last_stage)


def should_stop(findings: Sequence[Finding], analysis: int, analyses: int) -> bool:
    """Returns whether the lab stops after analysis number `analysis` of `analyses`. A lab stops after its last
    analysis, or when every declared comparison has a verdict."""
    if analysis >= analyses:
        return True
    declared = [finding for finding in findings if finding.decides]
    return bool(declared) and all(finding.conclusion is not Conclusion.CANNOT_TELL for finding in declared)
