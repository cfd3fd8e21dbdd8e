"""Response times of systems that were given the same work: at shares of the baseline's peak, in an open loop.

They carry no verdict. Where a system did not finish what was asked of it, its response times grow as long as the trial
lasts, and that it fell behind is the finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ironbench.model.finding import Finding
from ironbench.model.lab import Lab
from ironbench.model.note import Note, note
from ironbench.model.record import Record
from ironbench.model.sample import sampled
from ironbench.model.system import Setup
from ironbench.stats.multiplicity import LEAST_BLOCKS
from ironbench.study.archive import Archive
from ironbench.study.curve import metrics_of
from ironbench.study.factors import Contrast, contrasts
from ironbench.study.summarise import Summary


@dataclass(frozen=True, slots=True)
class TrialPoint:
    """One trial."""

    block: int
    """0-based."""
    value_s: float
    kept: bool
    """Whether the trial kept the rate."""


@dataclass(frozen=True, slots=True)
class Time:
    """One percentile of the response times of one cell at one rate."""

    summary: Summary
    """Its centre is that of the transactions of all trials together (`summarise.with_pooled`)."""
    points: tuple[TrialPoint, ...]
    """In order of blocks."""


@dataclass(frozen=True, slots=True)
class Side:
    """One cell at one rate."""

    name: str
    """Of the cell that it is, without the rate."""
    times: dict[str, Time]
    """By percentile of the response time, over the trials that may be compared."""
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


def same_loads(
    lab: Lab, findings: Sequence[Finding], records: Sequence[Record], archive: Archive
) -> tuple[SameLoad, ...]:
    """Of every rated comparison that has a finding. `records`: one for each cell and block."""
    own = {setup.cell.name: setup.cell.levels for setup in lab.setups}
    names = contrasts(own, list(lab.comparisons))
    loads = []
    for cell, baseline in lab.rated_comparisons:
        of = tuple(
            finding
            for finding in findings
            if (finding.cell, finding.baseline) == (cell, baseline) and not finding.decides
        )
        setup = lab.setup(cell)
        if of:
            loads.append(
                SameLoad(
                    share=setup.cell.load.rate_share or 0.0,
                    rate=setup.cell.load.rate,
                    contrast=names[setup.of, lab.setup(baseline).of],
                    findings=of,
                    cell=_side(setup, of, records, archive),
                    baseline=_side(lab.setup(baseline), of, records, archive),
                )
            )
    return tuple(loads)


def fell_behind(cells: Sequence[str], records: Sequence[Record]) -> tuple[Note, ...]:
    """The cells that did not keep their rate."""
    notes = []
    for cell in cells:
        kept = [
            record.kept_rate is not False for record in records if record.cell.name == cell and record.status.comparable
        ]
        if not all(kept):
            notes.append(note("fell-behind", cell=cell, trials=kept.count(False), of=len(kept)))
    return tuple(notes)


def too_little_time(lab: Lab, first_stage: int, last_stage: int) -> tuple[Note, ...]:
    """That the budget left claims about rated cells without a verdict, and what budget would not; empty where it did
    not. The stages are those of one round."""
    needed_s, own = lab.method.budget_for_rates_s, {setup.cell.name for setup in lab.setups}
    about = {name for claim in lab.claims for name in claim.cells if name not in own}
    if needed_s is None or not about:
        return ()
    stages = range(first_stage, last_stage + 1)
    held = min(sum(one.cell.name == name and one.stage in stages for one in lab.trials) for name in about)
    if held >= LEAST_BLOCKS:
        return ()
    found = note(
        "budget-too-small",
        budget_s=lab.method.budget_s or 0.0,
        blocks=held,
        least=LEAST_BLOCKS,
        needed_s=needed_s,
        resumes=lab.name if lab.rated else "",
    )
    return (found,)


def _side(setup: Setup, findings: Sequence[Finding], records: Sequence[Record], archive: Archive) -> Side:
    usable = [record for record in records if record.cell.name == setup.cell.name and record.status.comparable]
    times = {}
    for metric, summary in metrics_of(usable, [finding.metric for finding in findings], archive).items():
        points = [
            TrialPoint(record.block, value, record.kept_rate is not False)
            for record in usable
            if (value := record.metrics.get(metric, 0.0)) > 0 and sampled(record, metric)
        ]
        times[metric] = Time(summary, tuple(sorted(points, key=lambda point: point.block)))
    return Side(setup.of, times, len(usable), sum(not record.kept_rate is not False for record in usable))
