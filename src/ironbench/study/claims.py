"""Compares a lab author's claims with the findings."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ironbench import catalogue
from ironbench.model.finding import Conclusion, Finding
from ironbench.model.lab import Claim, Lab
from ironbench.model.note import Note, note
from ironbench.model.record import Record
from ironbench.model.sample import lacking, sampled
from ironbench.plan.requirements import LEAST_TRIALS
from ironbench.stats.intervals import LEVEL, half_width, wilson
from ironbench.stats.multiplicity import LEAST_BLOCKS
from ironbench.study.comparability import flagged

RESOLUTION = 0.001
"""Relative resolution of the times in a histogram."""


class ClaimVerdict(StrEnum):
    """Result of checking a claim. A lab exits with 4 only if a claim is refuted."""

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim and its verdict."""

    claim: Claim
    verdict: ClaimVerdict
    reasons: tuple[Note, ...] = ()
    """Evidence for the verdict, from the findings."""
    low: float | None = None
    """Lower bound of the metric's confidence interval, for a claim about one configuration. `high` is the upper
    bound."""
    high: float | None = None


def judged(
    lab: Lab, findings: Sequence[Finding], records: Sequence[Record] = (), level: float = LEVEL
) -> tuple[JudgedClaim, ...]:
    """Returns a verdict for each claim of the lab, in order. A claim about configurations that were not compared is
    undecided.

    `records`: the round's records. `level`: alpha of a two-sided test at this interim analysis.
    """
    return tuple(_judged(lab, claim, findings, records, level) for claim in lab.claims)


def _judged(
    lab: Lab, claim: Claim, findings: Sequence[Finding], records: Sequence[Record], level: float
) -> JudgedClaim:
    if claim.kind == "ratio":
        return _ratio(lab, claim, findings)
    if claim.kind == "order":
        return _order(lab, claim, findings)
    return requirement(claim, [record for record in records if record.cell.name == claim.cells[0]], level)


def requirement(claim: Claim, records: Sequence[Record], level: float = LEVEL) -> JudgedClaim:
    """Compares a limit with the confidence interval of a configuration's trials.

    The requirement is confirmed if the whole interval meets the limit, and refuted if the whole interval violates it.
    The reasons contain the number of flagged trials.
    """
    usable = [record for record in records if record.status.comparable and claim.metric in record.metrics]
    enough = [record for record in usable if sampled(record, claim.metric)]
    if len(enough) < LEAST_TRIALS:
        few = lacking(usable, [claim.metric])
        why = (
            note("too-few-transactions", needs=few)
            if few
            else note("too-few-trials", trials=len(enough), least=LEAST_TRIALS)
        )
        return JudgedClaim(claim, ClaimVerdict.UNDECIDED, (why,))
    sustains = claim.low is not None and catalogue.base_name(claim.metric) == "throughput"
    decide = _sustained if sustains and enough[0].kept_rate is not None else _against_limit
    found = decide(claim, enough, level)
    return replace(found, reasons=(*found.reasons, *flagged(enough)))


def _against_limit(claim: Claim, enough: Sequence[Record], level: float) -> JudgedClaim:
    found = interval_over_trials(claim.metric, enough, level)
    if found is None:
        return JudgedClaim(claim, ClaimVerdict.UNDECIDED, (note("no-interval-at-look"),))
    least = claim.low if claim.low is not None else -math.inf
    most = claim.high if claim.high is not None else math.inf
    verdict = ClaimVerdict.UNDECIDED
    if least <= found[0] and found[1] <= most:
        verdict = ClaimVerdict.CONFIRMED
    elif found[1] < least or found[0] > most:
        verdict = ClaimVerdict.REFUTED
    seen = note(
        "value-against-limit",
        verdict=verdict.value,
        low=found[0],
        high=found[1],
        unit=catalogue.metric(claim.metric).unit,
        confidence=1 - level,
        trials=len(enough),
    )
    return JudgedClaim(claim, verdict, (seen,), *found)


def _sustained(claim: Claim, records: Sequence[Record], _level: float) -> JudgedClaim:
    """Judges a target rate. A trial either sustained the rate or not, so no confidence interval is needed."""
    kept = sum(record.kept_rate is not False for record in records)
    asked = records[0].cell.load.rate or claim.low or 0.0
    seen = (note("rate-sustained", trials=kept, of=len(records), rate=asked),)
    if kept == len(records):
        return JudgedClaim(claim, ClaimVerdict.CONFIRMED, seen)
    return JudgedClaim(claim, ClaimVerdict.UNDECIDED if kept else ClaimVerdict.REFUTED, seen)


def interval_over_trials(metric: str, records: Sequence[Record], level: float) -> tuple[float, float] | None:
    """Returns the confidence interval of the metric over trials. Returns None if `level` is 0.

    Uses Student's t on logarithms, because rates and times are positive and skewed. A failure rate may be 0. The
    interval of a failure rate is therefore extended to contain the score interval of all transactions together (Wilson
    1927). Histograms have a resolution of 0.1%, so the interval of a time is at least ±0.1%.
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


def _ratio(lab: Lab, claim: Claim, findings: Sequence[Finding]) -> JudgedClaim:
    """Confirms a claim about a ratio if the whole confidence interval is inside the claimed range, and refutes it if
    the whole interval is outside."""
    match = _declared_interval(claim.cells[0], claim.cells[1], claim.metric, findings)
    if match is None:
        cells = tuple(map(lab.configuration, claim.cells[:2]))
        return JudgedClaim(claim, ClaimVerdict.UNDECIDED, (note("not-compared", cells=cells),))
    finding, low, high = match
    if finding.barred or finding.blocks < LEAST_BLOCKS:
        why = finding.barred or note("fewer-blocks", least=LEAST_BLOCKS)
        return JudgedClaim(claim, ClaimVerdict.UNDECIDED, (why,))
    least = claim.low if claim.low is not None else 0.0
    most = claim.high if claim.high is not None else math.inf
    # The ratio may have changed during the trials. If the confidence interval is inside the claimed range, the ratio
    # must be inside at the start and at the end of the change; if it is outside, the ratio must be outside at both
    # ends.
    ends = [1 / end if finding.cell != claim.cells[0] else end for end in finding.ends or ()]
    inside = [least <= end <= most for end in ends]
    if ends and not (all(inside) if least <= low and high <= most else not any(inside)):
        return JudgedClaim(claim, ClaimVerdict.UNDECIDED, (finding.changed,) if finding.changed else ())
    verdict = ClaimVerdict.UNDECIDED
    if least <= low and high <= most:
        verdict = ClaimVerdict.CONFIRMED
    elif high < least or low > most:
        verdict = ClaimVerdict.REFUTED
    seen = note("interval-against-range", verdict=verdict.value, low=low, high=high, confidence=finding.confidence)
    return JudgedClaim(claim, verdict, (seen,))


def _order(lab: Lab, claim: Claim, findings: Sequence[Finding]) -> JudgedClaim:
    """Confirms a claimed order if each configuration is better than the next one. Refutes the order if a configuration
    is worse than the next one or equivalent to it."""
    open_pairs, against = [], []
    for cell, following in zip(claim.cells, claim.cells[1:], strict=False):
        conclusion = _conclusion(cell, following, claim.metric, findings)
        pair = {"cell": lab.configuration(cell), "following": lab.configuration(following)}
        if conclusion is Conclusion.CANNOT_TELL:
            open_pairs.append(note("order-of-two", **pair, conclusion=conclusion.value))
        elif conclusion is not Conclusion.FASTER:
            against.append(note("order-of-two", **pair, conclusion=conclusion.value))
    if against:
        return JudgedClaim(claim, ClaimVerdict.REFUTED, tuple(against))
    if open_pairs:
        return JudgedClaim(claim, ClaimVerdict.UNDECIDED, tuple(open_pairs))
    return JudgedClaim(claim, ClaimVerdict.CONFIRMED, (note("order-confirmed"),))


def _conclusion(cell: str, other: str, metric: str, findings: Sequence[Finding]) -> Conclusion:
    match = _declared_interval(cell, other, metric, findings)
    if match is None:
        return Conclusion.CANNOT_TELL
    turned = {Conclusion.FASTER: Conclusion.SLOWER, Conclusion.SLOWER: Conclusion.FASTER}
    conclusion = match[0].conclusion
    return conclusion if match[0].cell == cell else turned.get(conclusion, conclusion)


def _declared_interval(
    cell: str, other: str, metric: str, findings: Sequence[Finding]
) -> tuple[Finding, float, float] | None:
    """Finds the declared finding that compares two configurations, in either direction. Returns the finding and the
    confidence interval of the ratio of `cell` to `other`."""
    for finding in findings:
        if not finding.decides or finding.metric != metric:
            continue
        if (finding.cell, finding.baseline) == (cell, other):
            return finding, finding.low, finding.high
        if (finding.baseline, finding.cell) == (cell, other):
            return finding, 1 / finding.high, 1 / finding.low if finding.low > 0 else math.inf
    return None
