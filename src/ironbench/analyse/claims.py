"""A lab author's claims, held against the findings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ironbench.model.finding import Conclusion, Finding
from ironbench.model.lab import Claim
from ironbench.stats.multiplicity import LEAST_BLOCKS
from ironbench.words import grouped


class ClaimVerdict(StrEnum):
    """How a claim fared. Only a refuted one makes a lab exit with 4."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim and what became of it."""

    claim: Claim
    verdict: ClaimVerdict
    reason: str = ""
    """What the findings show, in words."""


def judged(claims: Sequence[Claim], findings: Sequence[Finding]) -> tuple[Judged, ...]:
    """One for each claim, in their order. A claim whose cells were not compared is undecided."""
    return tuple(_ratio(claim, findings) if claim.kind == "ratio" else _order(claim, findings) for claim in claims)


def _ratio(claim: Claim, findings: Sequence[Finding]) -> Judged:
    """Confirmed when the whole interval lies inside the claimed range, refuted when it lies outside."""
    match = _between(claim.cells[0], claim.cells[1], claim.metric, findings)
    if match is None:
        return Judged(claim, ClaimVerdict.UNDECIDED, f"{claim.cells[0]} and {claim.cells[1]} were not compared")
    finding, low, high = match
    if finding.barred or finding.blocks < LEAST_BLOCKS:
        return Judged(claim, ClaimVerdict.UNDECIDED, finding.barred or f"fewer than {LEAST_BLOCKS} complete blocks")
    least = claim.low if claim.low is not None else 0.0
    most = claim.high if claim.high is not None else math.inf
    # A range is kept or missed only if the ratio does so at both ends of its change.
    ends = [1 / end if finding.cell != claim.cells[0] else end for end in finding.ends or ()]
    inside = [least <= end <= most for end in ends]
    if ends and not (all(inside) if least <= low and high <= most else not any(inside)):
        return Judged(claim, ClaimVerdict.UNDECIDED, f"the ratio {finding.changed}")
    seen = f"{_ratio_words(low)} to {_ratio_words(high)} at {100 * finding.confidence:.3g} % confidence"
    if least <= low and high <= most:
        return Judged(claim, ClaimVerdict.CONFIRMED, f"the interval {seen} lies inside the range")
    if high < least or low > most:
        return Judged(claim, ClaimVerdict.REFUTED, f"the interval {seen} lies outside the range")
    return Judged(claim, ClaimVerdict.UNDECIDED, f"the interval {seen} lies partly outside the range")


def _ratio_words(ratio: float) -> str:
    """Four significant digits: a bound of 0.000 would be useless."""
    return grouped(ratio) if 1000 <= ratio < math.inf else f"{ratio:#.4g}"


def _order(claim: Claim, findings: Sequence[Finding]) -> Judged:
    """Confirmed when each cell is better than the next; refuted as soon as one is worse or equivalent."""
    open_pairs, against = [], []
    for cell, following in zip(claim.cells, claim.cells[1:], strict=False):
        conclusion = _conclusion(cell, following, claim.metric, findings)
        if conclusion is Conclusion.CANNOT_TELL:
            open_pairs.append(f"{cell} against {following} is undecided")
        elif conclusion is not Conclusion.FASTER:
            words = "is slower than" if conclusion is Conclusion.SLOWER else "is equivalent to"
            against.append(f"{cell} {words} {following}")
    if against:
        return Judged(claim, ClaimVerdict.REFUTED, "; ".join(against))
    if open_pairs:
        return Judged(claim, ClaimVerdict.UNDECIDED, "; ".join(open_pairs))
    return Judged(claim, ClaimVerdict.CONFIRMED, "each is better than the next")


def _conclusion(cell: str, other: str, metric: str, findings: Sequence[Finding]) -> Conclusion:
    match = _between(cell, other, metric, findings)
    if match is None:
        return Conclusion.CANNOT_TELL
    turned = {Conclusion.FASTER: Conclusion.SLOWER, Conclusion.SLOWER: Conclusion.FASTER}
    conclusion = match[0].conclusion
    return conclusion if match[0].cell == cell else turned.get(conclusion, conclusion)


def _between(cell: str, other: str, metric: str, findings: Sequence[Finding]) -> tuple[Finding, float, float] | None:
    """The declared finding of two cells, whichever was the baseline, and the interval of `cell` over `other`."""
    for finding in findings:
        if not finding.decides or finding.metric != metric:
            continue
        if (finding.cell, finding.baseline) == (cell, other):
            return finding, finding.low, finding.high
        if (finding.baseline, finding.cell) == (cell, other):
            return finding, 1 / finding.high, 1 / finding.low if finding.low > 0 else math.inf
    return None
