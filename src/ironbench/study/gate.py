"""Whether a change may pass: each comparison of a lab against the slowdown that is allowed.

Both outcomes are tests of the margin. *slower*: the whole 95 % confidence interval lies beyond it. *not slower*: a
slowdown of the margin is rejected by a one-sided test at 5 %, the same that calls two systems equivalent
(non-inferiority: ICH E9, Statistics in Medicine 18, 1999, section 3.3.2; Schuirmann, Journal of Pharmacokinetics and
Biopharmaceutics 15, 1987). Anything else is *cannot tell*: absence of proof passes nothing by itself.

The error rates hold for the gate as a whole:

- Looks spend the level as they do for verdicts (`analyse.looks`).
- For *slower*, comparisons share the level equally (Bonferroni), since any of them stops the change. Holm's steps of
  the verdicts are for the hypothesis that nothing differs; against a margin they would not bound that chance. For
  *not slower* each has the whole level, since all of them must pass (intersection-union test: Berger, Technometrics 24,
  1982).
- Round k of a lab that was continued has 1 / 4**(k - 1) of the level, so that whoever adds rounds until one decides is
  stopped at a true slowdown of the margin in at most 2.5 % (1 + 1/4 + 1/16 + …) = 3.3 % of labs, and passes in at most
  6.7 %.

An earlier round that ended in *slower* is not taken back by a later one: otherwise somebody repeats until chance
agrees. Blocks that one side lost more often than the other never pass, whatever the policy is: a version that crashes
under load would be compared only where it survived.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from ironbench.catalogue import base_name, metrics
from ironbench.model.finding import Finding
from ironbench.model.lab import VALUE, Lab
from ironbench.model.note import Note, note
from ironbench.model.sample import resolution
from ironbench.stats.multiplicity import LEAST_BLOCKS, LEVEL
from ironbench.stats.ratio import paired
from ironbench.study.claims import ClaimVerdict
from ironbench.study.findings import declared, method_of
from ironbench.study.looks import at, earlier

if TYPE_CHECKING:
    from ironbench.study.claims import Judged
    from ironbench.study.study import Effect, Study

POLICIES = ("fail", "pass")
"""What becomes of a gate that cannot tell."""


_ROUNDS = 4
"""A further round has this part of the level of the one before."""


class GateVerdict(StrEnum):
    NOT_SLOWER = "not slower"
    SLOWER = "slower"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class GateLevels:
    """Nominal levels of the two tests of one comparison at one look of one round."""

    slower: float = LEVEL
    """Two-sided."""
    not_slower: float = LEVEL
    """One-sided."""


@dataclass(frozen=True, slots=True)
class Slowdown:
    """How much slower a change is; below 0 where it is faster. Of a throughput the time that the same work takes
    longer, so that both directions of a metric have one measure."""

    least: float
    """At the near end of the confidence interval."""
    likely: float
    most: float
    """At the far end of the same interval."""
    bound: float
    """The one-sided upper bound, which *not slower* compares with the margin; nearer than `most`."""


@dataclass(frozen=True, slots=True)
class GatedComparison:
    """One comparison of a gate."""

    effect: Effect
    """With the gate's own interval."""
    verdict: GateVerdict
    why: Note
    slowdown: Slowdown


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
        """The worst of the comparisons; *not slower* where only claims are judged."""
        ends = {one.verdict for one in self.comparisons}
        worst_first = (GateVerdict.SLOWER, GateVerdict.CANNOT_TELL, GateVerdict.NOT_SLOWER)
        return next((one for one in worst_first if one in ends), GateVerdict.NOT_SLOWER)

    @property
    def closed(self) -> bool:
        """Whether the change is stopped."""
        return any(self.stops(one) for one in self.comparisons) or any(self.refuses(one) for one in self.claims)

    @property
    def claims(self) -> tuple[Judged, ...]:
        """What the author of the lab expects of single configurations; pairs of other claims are comparisons."""
        return tuple(one for one in self.study.claims if one.claim.kind == VALUE)

    def refuses(self, one: Judged) -> bool:
        """Whether this claim alone closes the gate."""
        if one.verdict is ClaimVerdict.UNDECIDED:
            return self.undecided == "fail"
        return one.verdict is ClaimVerdict.REFUTED

    def stops(self, one: GatedComparison) -> bool:
        """Whether this comparison alone closes the gate."""
        if one.verdict is GateVerdict.CANNOT_TELL:
            return self.undecided == "fail" or one.effect.finding.unequal_losses
        return one.verdict is GateVerdict.SLOWER


def gate(study: Study, effects: Sequence[Effect], margin: float, undecided: str) -> Gate:
    """`effects`: comparisons that carry verdicts, one at least. Those of metrics that are neither better nor worse when
    they grow are left out."""
    judged = [one for one in effects if has_better(one.finding.metric)] or effects
    return Gate(study, margin, tuple(_over_rounds(one, study, margin) for one in judged), undecided)


def _over_rounds(effect: Effect, study: Study, margin: float) -> GatedComparison:
    lab = study.lab
    if lab is None:
        return gated(effect, margin, missing=study.missing)
    found = gated(effect, margin, levels(lab, effect.finding, study.look), study.missing)
    if found.verdict is GateVerdict.SLOWER:
        return found
    for before, look in zip(study.earlier, earlier(lab.method, study.look), strict=False):
        for one in before.effects:
            asked = _turned_as(one.finding, effect.finding)
            if asked is None:
                continue
            then = gated(replace(effect, finding=asked), margin, levels(lab, asked, look))
            if then.verdict is GateVerdict.SLOWER:
                why = note("slower-in-earlier-round", round=before.number, why=then.why)
                return replace(found, verdict=GateVerdict.SLOWER, why=why, slowdown=then.slowdown)
    return found


def levels(lab: Lab, finding: Finding, look: int) -> GateLevels:
    """Of one comparison of a lab after stage `look`."""
    place = at(method_of(lab, finding.cell), look)
    share = LEVEL / _ROUNDS ** (place.round - 1)
    return GateLevels(place.level(share / max(1, len(declared(lab))), 2), place.level(share, 1))


def _turned_as(one: Finding, asked: Finding) -> Finding | None:
    """The finding with the same baseline as `asked`; None where it compares something else."""
    if one.metric != asked.metric or {one.cell, one.baseline} != {asked.cell, asked.baseline}:
        return None
    if one.cell == asked.cell:
        return one
    return replace(
        one,
        cell=one.baseline,
        baseline=one.cell,
        ratios=tuple((block, 1 / ratio) for block, ratio in one.ratios),
        ratio=1 / one.ratio,
        ends=(1 / one.ends[0], 1 / one.ends[1]) if one.ends else None,
        lost=(one.lost[1], one.lost[0]),
    )


def gated(effect: Effect, margin: float, at: GateLevels = GateLevels(), missing: int = 0) -> GatedComparison:
    """`missing`: planned trials that are still to be run."""
    finding, ratios = (
        effect.finding,
        paired([ratio for _, ratio in effect.finding.ratios] or [1.0], resolution(effect.finding.metric)),
    )
    low, high = ratios.interval(at.slower)
    ends = [_slower(finding.metric, end) for end in (low, high)]
    bounds = [_slower(finding.metric, end) for end in ratios.interval(2 * at.not_slower)]
    found = Slowdown(min(ends), _slower(finding.metric, finding.ratio), max(ends), max(bounds))
    if at.slower > 0 and finding.ratios:
        finding = replace(finding, low=low, high=high, confidence=1 - at.slower)
    verdict, why = _judged(finding, found, margin, missing)
    return GatedComparison(replace(effect, finding=finding), verdict, why, found)


def _judged(finding: Finding, found: Slowdown, margin: float, missing: int) -> tuple[GateVerdict, Note]:
    if missing:
        return GateVerdict.CANNOT_TELL, note("trials-still-to-run", missing=missing)
    if not has_better(finding.metric):
        return GateVerdict.CANNOT_TELL, note("no-better-direction", metric=finding.metric)
    if finding.barred:
        return GateVerdict.CANNOT_TELL, finding.barred
    if finding.blocks < LEAST_BLOCKS:
        return GateVerdict.CANNOT_TELL, note(
            "gate-of-too-few-blocks", blocks=finding.blocks, least=LEAST_BLOCKS, advice=finding.advice
        )
    # What the mean of a drift shows, one of its ends may not.
    ends = [_slower(finding.metric, ratio) for ratio in finding.ends or ()]
    if any(end > margin for end in ends) and min(found.least, *ends) <= margin:
        why = note("slower-at-one-end", change=finding.changed, slowdown=max(ends), margin=margin)
        return GateVerdict.CANNOT_TELL, why
    if found.least > margin:
        return GateVerdict.SLOWER, note("slower", slowdown=found.likely, margin=margin)
    if found.bound <= margin:
        return GateVerdict.NOT_SLOWER, note("not-slower", bound=found.bound, margin=margin)
    # The finding's advice is for its own margin.
    advice = finding.advice if margin == finding.margin else None
    why = note("perhaps-slower", least=found.least, most=found.most, margin=margin, advice=advice)
    return GateVerdict.CANNOT_TELL, why


def has_better(metric: str) -> bool:
    """Whether more or less of it is better."""
    return _better(metric) != "neither"


def _better(metric: str) -> str:
    known = metrics().get(base_name(metric))
    return known.better if known is not None else "higher"


def _slower(metric: str, ratio: float) -> float:
    if _better(metric) == "lower":
        return ratio - 1
    return 1 / ratio - 1 if ratio else math.inf
