"""Response times of systems under the same open-loop load, at percentages of the baseline's peak throughput.

These comparisons have no verdict. If a system does not sustain the rate, its response times grow with the length of the
trial and have no meaning. The only result is then that the rate was not sustained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ironbench.model.finding import Finding
from ironbench.model.lab import Configuration, Lab
from ironbench.model.note import Note, note
from ironbench.model.record import Record
from ironbench.model.sample import sampled
from ironbench.model.system import Setup
from ironbench.stats.multiplicity import LEAST_BLOCKS
from ironbench.study.archive import Archive
from ironbench.study.curve import metrics_of
from ironbench.study.factors import named_sides
from ironbench.study.summarise import Summary


@dataclass(frozen=True, slots=True)
class TrialPoint:
    """The value of a percentile in one trial."""

    block: int
    """0-based number of the block."""
    value_s: float
    kept: bool
    """Whether the trial sustained the rate."""


@dataclass(frozen=True, slots=True)
class RatedPercentile:
    """A percentile of the response times of one configuration at one rate."""

    summary: Summary
    """The centre is computed over the transactions of all trials together (`summarise.with_pooled`). The range is the
    range of the trials."""
    points: tuple[TrialPoint, ...]
    """Values of the trials, in order of blocks."""


@dataclass(frozen=True, slots=True)
class RatedSide:
    """A configuration at one rate."""

    name: str
    """Name of the underlying configuration, without the rate."""
    times: dict[str, RatedPercentile]
    """For each percentile, its values over the comparable trials."""
    trials: int
    behind: int
    """Number of trials that did not sustain the rate."""


@dataclass(frozen=True, slots=True)
class SameLoad:
    """Two configurations at the same rate."""

    share: float
    """Rate as a fraction of the baseline's peak."""
    rate: float | None
    """Target rate: transactions started per second. The value is None before the peak is known."""
    sides: tuple[Configuration, Configuration]
    """Names of the underlying configurations, as in `Finding.sides`."""
    where: Configuration
    """Factor values that both configurations have in common, as in `Finding.where`."""
    findings: tuple[Finding, ...]
    """Findings for each percentile, without verdicts."""
    cell: RatedSide
    baseline: RatedSide


def same_loads(
    lab: Lab, findings: Sequence[Finding], records: Sequence[Record], archive: Archive
) -> tuple[SameLoad, ...]:
    """Returns every fixed-rate comparison that has a finding. `records`: one record for each configuration and
    block."""
    names = named_sides(lab, lab.comparisons)
    loads = []
    for cell, baseline in lab.rated_comparisons:
        of = tuple(
            finding
            for finding in findings
            if (finding.cell, finding.baseline) == (cell, baseline) and not finding.decides
        )
        setup = lab.setup(cell)
        if of:
            own, other, where = names[setup.of, lab.setup(baseline).of]
            loads.append(
                SameLoad(
                    share=setup.cell.load.rate_share or 0.0,
                    rate=setup.cell.load.rate,
                    sides=(own, other),
                    where=where,
                    findings=of,
                    cell=_side(setup, of, records, archive),
                    baseline=_side(lab.setup(baseline), of, records, archive),
                )
            )
    return tuple(loads)


def fell_behind(lab: Lab, cells: Sequence[str], records: Sequence[Record]) -> tuple[Note, ...]:
    """Returns notes on the configurations that did not sustain their rate."""
    notes = []
    for cell in cells:
        kept = [
            record.kept_rate is not False for record in records if record.cell.name == cell and record.status.comparable
        ]
        if not all(kept):
            notes.append(note("fell-behind", cell=lab.configuration(cell), trials=kept.count(False), of=len(kept)))
    return tuple(notes)


def too_little_time(lab: Lab, first_stage: int, last_stage: int) -> tuple[Note, ...]:
    """Returns a note if the budget gives these stages too few blocks to decide claims about fixed-rate configurations.
    The note contains the required budget. The stages must belong to one round.
    """
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


def _side(setup: Setup, findings: Sequence[Finding], records: Sequence[Record], archive: Archive) -> RatedSide:
    usable = [record for record in records if record.cell.name == setup.cell.name and record.status.comparable]
    times = {}
    for metric, summary in metrics_of(usable, [finding.metric for finding in findings], archive).items():
        points = [
            TrialPoint(record.block, value, record.kept_rate is not False)
            for record in usable
            if (value := record.metrics.get(metric, 0.0)) > 0 and sampled(record, metric)
        ]
        times[metric] = RatedPercentile(summary, tuple(sorted(points, key=lambda point: point.block)))
    return RatedSide(setup.of, times, len(usable), sum(not record.kept_rate is not False for record in usable))
