"""Response times of systems that were given the same work: at shares of the baseline's peak, in an open loop.

They carry no verdict. Where a system did not finish what was asked of it, its response times grow as long as the trial
lasts, and that it fell behind is the finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ironbench.analyse.contrast import Contrast, contrasts
from ironbench.analyse.summarise import Summary, summarise
from ironbench.model.finding import Finding
from ironbench.model.lab import Lab
from ironbench.model.record import Record

BEHIND = "rate-not-kept"
"""The warning of a trial that finished less than it was asked to."""


@dataclass(frozen=True, slots=True)
class Side:
    """One cell at one rate."""

    times: dict[str, Summary]
    """Percentile of the response time → over the trials that may be compared, in s."""
    trials: int
    behind: int
    """Trials that did not keep the rate."""


@dataclass(frozen=True, slots=True)
class SameLoad:
    """Two cells at one rate."""

    share: float
    """Of the baseline's peak."""
    rate: float | None
    """Transactions started per second; None before the peak is known."""
    contrast: Contrast
    """Of the cells that these are."""
    findings: tuple[Finding, ...]
    """A percentile each; without verdicts."""
    cell: Side
    baseline: Side


def same_loads(lab: Lab, findings: Sequence[Finding], records: Sequence[Record]) -> tuple[SameLoad, ...]:
    """Of every rated comparison that has a finding. `records`: one for each cell and block."""
    own = {setup.cell.name: setup.cell.levels for setup in lab.setups}
    names = contrasts(own, list(lab.comparisons))
    found = []
    for cell, baseline in lab.rated_comparisons:
        of = tuple(finding for finding in findings if (finding.cell, finding.baseline) == (cell, baseline))
        setup = lab.setup(cell)
        if of:
            found.append(
                SameLoad(
                    share=setup.cell.load.rate_share or 0.0,
                    rate=setup.cell.load.rate,
                    contrast=names[setup.of, lab.setup(baseline).of],
                    findings=of,
                    cell=_side(cell, of, records),
                    baseline=_side(baseline, of, records),
                )
            )
    return tuple(found)


def _side(name: str, findings: Sequence[Finding], records: Sequence[Record]) -> Side:
    usable = [record for record in records if record.cell.name == name and record.status.comparable]
    times = {}
    for finding in findings:
        summary = summarise([r.metrics[finding.metric] for r in usable if finding.metric in r.metrics])
        if summary:
            times[finding.metric] = summary
    behind = sum(any(warning.code == BEHIND for warning in record.warnings) for record in usable)
    return Side(times, len(usable), behind)
