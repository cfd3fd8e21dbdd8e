"""A lab author's claims, held against the findings."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ironbench import catalogue, units
from ironbench.model.finding import Conclusion, Finding
from ironbench.model.lab import Claim
from ironbench.model.record import Record
from ironbench.model.sample import lacking, sampled
from ironbench.plan.requirements import LEAST_TRIALS
from ironbench.stats.intervals import half_width, wilson
from ironbench.stats.multiplicity import LEAST_BLOCKS
from ironbench.words import grouped

RESOLUTION = 0.001
"""Of a time in a histogram, relative."""


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
    low: float | None = None
    """Of a claim about one configuration: the confidence interval of its metric."""
    high: float | None = None


def judged(
    claims: Sequence[Claim], findings: Sequence[Finding], records: Sequence[Record] = (), level: float = 0.05
) -> tuple[Judged, ...]:
    """One for each claim, in their order. A claim whose cells were not compared is undecided.

    `records`: those of the round; `level`: what a two-sided test may spend at this look.
    """
    return tuple(_judged(claim, findings, records, level) for claim in claims)


def _judged(claim: Claim, findings: Sequence[Finding], records: Sequence[Record], level: float) -> Judged:
    if claim.kind == "ratio":
        return _ratio(claim, findings)
    if claim.kind == "order":
        return _order(claim, findings)
    return requirement(claim, [record for record in records if record.cell.name == claim.cells[0]], level)


def requirement(claim: Claim, records: Sequence[Record], level: float = 0.05) -> Judged:
    """Compares a limit with the confidence interval of a configuration's trials: confirmed when the whole interval
    keeps the limit, refuted when all of it breaks the limit."""
    usable = [record for record in records if record.status.comparable and claim.metric in record.metrics]
    enough = [record for record in usable if sampled(record, claim.metric)]
    if len(enough) < LEAST_TRIALS:
        few = lacking(usable, [claim.metric])
        why = few or f"{len(enough)} of {LEAST_TRIALS} trials that a confidence interval needs"
        return Judged(claim, ClaimVerdict.UNDECIDED, why)
    if claim.low is not None and catalogue.base_name(claim.metric) == "throughput" and enough[0].kept_rate is not None:
        return _sustained(claim, enough)
    found = spread(claim.metric, enough, level)
    if found is None:
        return Judged(claim, ClaimVerdict.UNDECIDED, "no interval: this configuration decides nothing at this look")
    unit = catalogue.metric(claim.metric).unit
    least = claim.low if claim.low is not None else -math.inf
    most = claim.high if claim.high is not None else math.inf
    seen = f"{_words(found[0], unit)} to {_words(found[1], unit)} at {100 * (1 - level):.3g} % confidence"
    seen += f", {len(enough)} trials"
    if least <= found[0] and found[1] <= most:
        return Judged(claim, ClaimVerdict.CONFIRMED, f"{seen}: within the limit", *found)
    if found[1] < least or found[0] > most:
        return Judged(claim, ClaimVerdict.REFUTED, f"{seen}: beyond the limit", *found)
    return Judged(claim, ClaimVerdict.UNDECIDED, f"{seen}: partly beyond the limit; more trials narrow it", *found)


def _words(value: float, unit: str) -> str:
    if unit == "s":
        return f"{value:.3g} s" if value >= 0.9995 else f"{value * 1e3:.3g} ms"
    if unit == "1/s":
        return units.rate(value)
    return f"{value:.4g}" if unit == "1" else f"{value:.4g} {unit}"


def _sustained(claim: Claim, records: Sequence[Record]) -> Judged:
    """A rate is a fact of a trial: what was due was done, or not."""
    kept = sum(record.kept_rate is not False for record in records)
    asked = units.rate(records[0].cell.load.rate or claim.low or 0.0)
    seen = f"{kept} of {len(records)} trials sustained {asked}"
    if kept == len(records):
        return Judged(claim, ClaimVerdict.CONFIRMED, seen)
    return Judged(claim, ClaimVerdict.UNDECIDED if kept else ClaimVerdict.REFUTED, seen)


def spread(metric: str, records: Sequence[Record], level: float) -> tuple[float, float] | None:
    """Confidence interval of the metric over trials; None where `level` is 0.

    Student's t on logarithms: rates and times are positive and skewed. A share of failed transactions may be 0; its
    interval contains the score interval of all transactions together (Wilson 1927). Percentiles come from histograms
    that resolve 0.1%, so no interval of a time is narrower.
    """
    if not level:
        return None
    values = [record.metrics[metric] for record in records]
    if min(values) > 0:
        logs = [math.log(value) for value in values]
        centre, half = statistics.fmean(logs), half_width(logs, level)
        if catalogue.metric(metric).unit == "s":
            half = max(half, RESOLUTION)
        return math.exp(centre - half), math.exp(centre + half)
    centre, half = statistics.fmean(values), half_width(values, level)
    low, high = centre - half, centre + half
    if catalogue.base_name(metric) == "failed_fraction":
        done = math.fsum(record.metrics.get("transactions", 0.0) for record in records)
        pooled = wilson(centre, done)
        low, high = max(0.0, min(low, pooled[0])), max(high, pooled[1])
    return low, high


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
