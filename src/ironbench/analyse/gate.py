"""Whether a change may pass: each comparison of a lab against the slowdown that is allowed.

*slower*: the finding is slower, and its ratio is beyond the margin. *not slower*: the slow end of its interval lies
within the margin, or it is equivalent within it, so that these blocks exclude such a slowdown (a test of
non-inferiority: ICH E9, Statistics in Medicine 18, 1999, section 3.3.2). Anything else is *cannot tell*: absence of
proof passes nothing by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from ironbench.model.finding import Conclusion, Finding
from ironbench.stats.multiplicity import LEAST_BLOCKS
from ironbench.words import counted, in_percent

if TYPE_CHECKING:
    from ironbench.analyse.study import Effect, Study

POLICIES = ("fail", "pass")
"""What becomes of a gate that cannot tell."""


class GateVerdict(StrEnum):
    NOT_SLOWER = "not slower"
    SLOWER = "slower"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class GatedComparison:
    """One comparison of a gate."""

    effect: Effect
    verdict: GateVerdict
    why: str
    """A sentence."""


@dataclass(frozen=True, slots=True)
class Gate:
    """All comparisons of one lab that were asked about."""

    study: Study
    margin: float
    """The largest slowdown allowed, as a share of the new time: 0.05 lets a throughput sink to 1/1.05."""
    comparisons: tuple[GatedComparison, ...]
    undecided: str
    """One of `POLICIES`."""

    @property
    def question(self) -> str:
        """The lab's."""
        return self.study.lab.question if self.study.lab else ""

    @property
    def verdict(self) -> GateVerdict:
        """The worst of the comparisons."""
        ends = {one.verdict for one in self.comparisons}
        return next(one for one in (GateVerdict.SLOWER, GateVerdict.CANNOT_TELL, GateVerdict.NOT_SLOWER) if one in ends)

    @property
    def closed(self) -> bool:
        """Whether the change is stopped."""
        return any(self.stops(one) for one in self.comparisons)

    def stops(self, one: GatedComparison) -> bool:
        """Whether this comparison alone closes the gate."""
        if one.verdict is GateVerdict.CANNOT_TELL:
            return self.undecided == "fail"
        return one.verdict is GateVerdict.SLOWER


def gate(study: Study, effects: Sequence[Effect], margin: float, undecided: str) -> Gate:
    """`effects`: comparisons that carry verdicts, one at least. Those of metrics that are neither better nor worse when
    they grow are left out."""
    judged = [one for one in effects if has_better(one.finding.metric)] or effects
    return Gate(study, margin, tuple(gated(one, margin, study.missing) for one in judged), undecided)


def gated(effect: Effect, margin: float, missing: int = 0) -> GatedComparison:
    """`missing`: planned trials that are still to be run."""
    finding = effect.finding
    if missing:
        return GatedComparison(effect, GateVerdict.CANNOT_TELL, f"{counted(missing, 'planned trial')} still to be run.")
    if not has_better(finding.metric):
        reason = f"Neither more nor less {finding.metric} is better."
        return GatedComparison(effect, GateVerdict.CANNOT_TELL, reason)
    if reason := _open_question(finding):
        return GatedComparison(effect, GateVerdict.CANNOT_TELL, reason)
    likely, worst = slowdown(finding)
    allowed = f"{in_percent(margin)} {'is' if margin <= 1 else 'are'} allowed"
    if finding.conclusion is Conclusion.SLOWER and likely > margin:
        return GatedComparison(effect, GateVerdict.SLOWER, f"It is slower by {in_percent(likely)}; {allowed}.")
    # What the mean of a drift passes, one of its ends may not.
    end = max((_slower(finding.metric, ratio) for ratio in finding.ends or ()), default=0.0)
    if end > margin:
        words = f"The ratio {finding.changed}: at one end it is slower by {in_percent(end)}; {allowed}."
        return GatedComparison(effect, GateVerdict.CANNOT_TELL, words)
    if finding.conclusion is Conclusion.EQUIVALENT and worst > margin >= finding.margin:
        words = f"It is equivalent within {in_percent(finding.margin)}; {allowed}."
        return GatedComparison(effect, GateVerdict.NOT_SLOWER, words)
    if worst <= margin:
        most = f"by {in_percent(worst)} at most" if worst > 0 else "at all"
        return GatedComparison(effect, GateVerdict.NOT_SLOWER, f"It is not slower {most}; {allowed}.")
    begun = (
        f"It is slower by {in_percent(likely)}, " if finding.conclusion is Conclusion.SLOWER else "It may be slower "
    )
    # The finding's advice is for its own margin.
    advice = f" To tell: {finding.advice.rstrip('.')}." if finding.advice and margin == finding.margin else ""
    joint = "perhaps " if finding.conclusion is Conclusion.SLOWER else ""
    return GatedComparison(effect, GateVerdict.CANNOT_TELL, f"{begun}{joint}by {in_percent(worst)}; {allowed}.{advice}")


def _open_question(finding: Finding) -> str:
    """Why no interval of it may decide; empty where one may."""
    if finding.blocks < LEAST_BLOCKS:
        advice = f" To tell: {finding.advice.rstrip('.')}." if finding.advice else ""
        return f"{counted(finding.blocks, 'complete block')} of {LEAST_BLOCKS} that a verdict needs.{advice}"
    if finding.barred:
        return f"{finding.barred[:1].upper()}{finding.barred[1:].rstrip('.')}."
    if finding.changed and finding.conclusion is Conclusion.CANNOT_TELL:
        return f"The ratio {finding.changed}."
    return ""


def slowdown(finding: Finding) -> tuple[float, float]:
    """How much slower it is, and at the slow end of its interval; below 0 where it is faster. Of a throughput the
    time that the same work takes longer, so that both directions of a metric have one measure."""
    slow_end = max(_slower(finding.metric, end) for end in (finding.low, finding.high))
    return _slower(finding.metric, finding.ratio), slow_end


def has_better(metric: str) -> bool:
    """Whether more or less of it is better."""
    return _better(metric) != "neither"


def _better(metric: str) -> str:
    from ironbench.catalogue import base_name, metrics

    known = metrics().get(base_name(metric))
    return known.better if known is not None else "higher"


def _slower(metric: str, ratio: float) -> float:
    if _better(metric) == "lower":
        return ratio - 1
    return 1 / ratio - 1 if ratio else math.inf
