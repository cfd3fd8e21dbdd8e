"""Decides whether a change may pass, by comparing the slowdowns that a lab measured with the margin, which is the
largest allowed slowdown.

The outcomes are statistical tests. *slower*: the whole 95% confidence interval lies beyond the margin. *not slower*: as
in an equivalence verdict, a one-sided test at 5% rejects the hypothesis that the slowdown is as large as the margin
(non-inferiority: ICH E9, Statistics in Medicine 18, 1999, section 3.3.2; Schuirmann, Journal of Pharmacokinetics and
Biopharmaceutics 15, 1987). Otherwise, the result is inconclusive. Lack of evidence is no reason to pass.

These error rates apply to the gate as a whole:

- Interim analyses spend alpha as for verdicts (`study.interim`).
- For *slower*, comparisons share alpha equally (Bonferroni), because a single comparison stops the change. Holm's
  correction, which is used for verdicts, assumes that nothing differs and would not bound the error rate at a margin.
  For *not slower*, each comparison has the full alpha, because all of them must pass (intersection-union test: Berger,
  Technometrics 24, 1982).
- Round k of a continued lab has 1 / 4**(k - 1) of alpha. If a user adds rounds until a round decides, a true slowdown
  that equals the margin is called slower in at most 2.5% × (1 + 1/4 + 1/16 + …) = 3.3% of labs and passes in at most
  6.7%.

A later round does not override an earlier *slower*; otherwise repeating would eventually pass by chance. A comparison
in which one side lost more blocks than the other never passes, even under the policy "pass". Otherwise, a version that
crashes under load would be judged only by the blocks in which it did not crash.
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
from ironbench.study.interim import analysis_after, ends_of_earlier_rounds

if TYPE_CHECKING:
    from ironbench.study.claims import JudgedClaim
    from ironbench.study.study import Study

POLICIES = ("fail", "pass")
"""Policies for an inconclusive gate: it fails or it passes."""


_ROUNDS = 4
"""In each round, alpha is divided by this number: each round has 1/4 of the previous round's alpha."""


class GateVerdict(StrEnum):
    NOT_SLOWER = "not slower"
    SLOWER = "slower"
    CANNOT_TELL = "cannot tell"


class GateOutcome(StrEnum):
    """The result of a gate, or of one of its comparisons or claims. These spellings are used in all output formats."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"


_WORST_FIRST = (GateOutcome.FAIL, GateOutcome.INCONCLUSIVE, GateOutcome.PASS)
_OF_VERDICT = {
    GateVerdict.NOT_SLOWER: GateOutcome.PASS,
    GateVerdict.SLOWER: GateOutcome.FAIL,
    GateVerdict.CANNOT_TELL: GateOutcome.INCONCLUSIVE,
}
_OF_CLAIM = {
    ClaimVerdict.CONFIRMED: GateOutcome.PASS,
    ClaimVerdict.REFUTED: GateOutcome.FAIL,
    ClaimVerdict.UNDECIDED: GateOutcome.INCONCLUSIVE,
}


def of_claim(one: JudgedClaim) -> GateOutcome:
    """Returns the outcome of a claim in a gate."""
    return _OF_CLAIM[one.verdict]


@dataclass(frozen=True, slots=True)
class GateLevels:
    """Nominal alpha levels of two tests, the test for *slower* and the test for *not slower*. The levels apply to one
    comparison at one stage of one round."""

    slower: float = LEVEL
    """Alpha of the two-sided test for *slower*."""
    not_slower: float = LEVEL
    """Alpha of the one-sided test for *not slower*."""


@dataclass(frozen=True, slots=True)
class Slowdown:
    """How much slower a change is, as a fraction of the old time. Negative if it is faster.

    For throughput, it is the additional time for the same work. The margin therefore means the same for all metrics.
    Texts show the change of the metric itself instead (`report.wording.verdicts`).
    """

    least: float
    """Lower bound of the confidence interval."""
    likely: float
    most: float
    """Upper bound of the confidence interval."""
    bound: float
    """Upper bound of the one-sided interval. For *not slower*, it is compared with the margin. The bound is smaller
    than `most`."""


@dataclass(frozen=True, slots=True)
class GatedComparison:
    """A comparison judged by a gate."""

    finding: Finding
    """The comparison, with the gate's confidence interval."""
    verdict: GateVerdict
    why: Note
    slowdown: Slowdown

    @property
    def outcome(self) -> GateOutcome:
        return _OF_VERDICT[self.verdict]


@dataclass(frozen=True, slots=True)
class Gate:
    """The gated comparisons of a lab."""

    study: Study
    margin: float
    """Largest allowed slowdown, as a fraction of the old time. For example, 0.05 allows throughput to drop to
    1/1.05."""
    comparisons: tuple[GatedComparison, ...]
    undecided: str
    """The result if the gate is inconclusive: one of `POLICIES`."""

    @property
    def question(self) -> str:
        """The question of the lab."""
        return self.study.lab.question if self.study.lab else ""

    @property
    def verdict(self) -> GateVerdict:
        """The worst verdict among the comparisons. If the gate judges only claims, the verdict is *not slower*."""
        ends = {one.verdict for one in self.comparisons}
        worst_first = (GateVerdict.SLOWER, GateVerdict.CANNOT_TELL, GateVerdict.NOT_SLOWER)
        return next((one for one in worst_first if one in ends), GateVerdict.NOT_SLOWER)

    @property
    def outcome(self) -> GateOutcome:
        """The worst outcome of the comparisons and claims. For an inconclusive gate, the policy decides whether the
        change is stopped (`closed`)."""
        ends = {*(one.outcome for one in self.comparisons), *map(of_claim, self.claims)}
        return next((one for one in _WORST_FIRST if one in ends), GateOutcome.PASS)

    @property
    def closed(self) -> bool:
        """Whether the change is stopped."""
        return any(self.stops(one) for one in self.comparisons) or any(self.refuses(one) for one in self.claims)

    @property
    def claims(self) -> tuple[JudgedClaim, ...]:
        """Claims about single configurations, and all claims that this round or an earlier round refuted. Claims about
        a pair of configurations are otherwise left out, because the comparisons of the gate cover these pairs.
        """
        refuted = {one.claim.text: one for one in self.study.refuted}
        return tuple(
            refuted.get(one.claim.text, one)
            for one in self.study.claims
            if one.claim.kind == VALUE or one.claim.text in refuted
        )

    def refuses(self, one: JudgedClaim) -> bool:
        """Returns whether this claim is sufficient to fail the gate."""
        if one.verdict is ClaimVerdict.UNDECIDED:
            return self.undecided == "fail"
        return one.verdict is ClaimVerdict.REFUTED

    def stops(self, one: GatedComparison) -> bool:
        """Returns whether this comparison is sufficient to fail the gate."""
        if one.verdict is GateVerdict.CANNOT_TELL:
            return self.undecided == "fail" or one.finding.unequal_losses
        return one.verdict is GateVerdict.SLOWER


def gate(study: Study, findings: Sequence[Finding], margin: float, undecided: str) -> Gate:
    """Judges a lab. `findings`: at least one comparison with a verdict.

    If there are other comparisons, comparisons of metrics without a better direction are left out.
    """
    judged = [one for one in findings if has_better(one.metric)] or findings
    return Gate(study, margin, tuple(_over_rounds(one, study, margin) for one in judged), undecided)


def _over_rounds(finding: Finding, study: Study, margin: float) -> GatedComparison:
    lab = study.lab
    if lab is None:
        return gated(finding, margin, missing=study.missing)
    found = gated(finding, margin, levels(lab, finding, study.last_stage), study.missing)
    if found.verdict is GateVerdict.SLOWER:
        return found
    for before, stage in zip(study.earlier, ends_of_earlier_rounds(lab.method, study.last_stage), strict=False):
        for one in before.findings:
            asked = _turned_as(one, finding)
            if asked is None:
                continue
            then = gated(asked, margin, levels(lab, asked, stage))
            if then.verdict is GateVerdict.SLOWER:
                why = note("slower-in-earlier-round", round=before.number, why=then.why)
                return replace(found, verdict=GateVerdict.SLOWER, why=why, slowdown=then.slowdown)
    return found


def levels(lab: Lab, finding: Finding, stage: int) -> GateLevels:
    """Returns the alpha levels for one comparison of a lab after stage number `stage`."""
    place = analysis_after(method_of(lab, finding.cell), stage)
    share = LEVEL / _ROUNDS ** (place.round - 1)
    return GateLevels(place.level(share / max(1, len(declared(lab))), 2), place.level(share, 1))


def _turned_as(one: Finding, asked: Finding) -> Finding | None:
    """Returns the finding with the same configuration and baseline as `asked`, inverted if necessary. Returns None if
    it compares other configurations or another metric."""
    if one.metric != asked.metric or {one.cell, one.baseline} != {asked.cell, asked.baseline}:
        return None
    if one.cell == asked.cell:
        return one
    return replace(
        one,
        cell=one.baseline,
        baseline=one.cell,
        sides=(one.sides[1], one.sides[0]),
        ratios=tuple((block, 1 / ratio) for block, ratio in one.ratios),
        ratio=1 / one.ratio,
        ends=(1 / one.ends[0], 1 / one.ends[1]) if one.ends else None,
        lost=(one.lost[1], one.lost[0]),
    )


def gated(finding: Finding, margin: float, at: GateLevels = GateLevels(), missing: int = 0) -> GatedComparison:
    """Judges one comparison. `missing`: number of planned trials that have not run yet."""
    ratios = paired([ratio for _, ratio in finding.ratios] or [1.0], resolution(finding.metric))
    low, high = ratios.interval(at.slower)
    ends = [_slower(finding.metric, end) for end in (low, high)]
    bounds = [_slower(finding.metric, end) for end in ratios.interval(2 * at.not_slower)]
    found = Slowdown(min(ends), _slower(finding.metric, finding.ratio), max(ends), max(bounds))
    if at.slower > 0 and finding.ratios:
        finding = replace(finding, low=low, high=high, confidence=1 - at.slower)
    verdict, why = _judged(finding, found, margin, missing)
    return GatedComparison(finding, verdict, why, found)


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
    higher = _better(finding.metric) == "higher"
    # The ratio may have changed over the blocks. The slowdown may then exceed the margin at the start of the change and
    # not at the end, or the reverse.
    ends = [_slower(finding.metric, ratio) for ratio in finding.ends or ()]
    if any(end > margin for end in ends) and min(found.least, *ends) <= margin:
        why = note(
            "slower-at-one-end", change=finding.changed, slowdown=max(ends), margin=margin, higher_is_better=higher
        )
        return GateVerdict.CANNOT_TELL, why
    if found.least > margin:
        return GateVerdict.SLOWER, note("slower", slowdown=found.likely, margin=margin, higher_is_better=higher)
    if found.bound <= margin:
        return GateVerdict.NOT_SLOWER, note("not-slower", bound=found.bound, margin=margin, higher_is_better=higher)
    # The advice of the finding is for the margin of the finding, which may differ from the margin of the gate.
    advice = finding.advice if margin == finding.margin else None
    why = note(
        "perhaps-slower",
        least=found.least,
        most=found.most,
        margin=margin,
        higher_is_better=higher,
        advice=advice,
    )
    return GateVerdict.CANNOT_TELL, why


def has_better(metric: str) -> bool:
    """Returns whether the metric has a better direction."""
    return _better(metric) != "neither"


def _better(metric: str) -> str:
    known = metrics().get(base_name(metric))
    return known.better if known is not None else "higher"


def _slower(metric: str, ratio: float) -> float:
    if _better(metric) == "lower":
        return ratio - 1
    return 1 / ratio - 1 if ratio else math.inf
