"""Computes everything that a report on runs or on a lab shows. Output formats only render these results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ironbench.model.lab import VALUE, Configuration
from ironbench.model.note import Note, note
from ironbench.model.record import Record
from ironbench.study import timelines
from ironbench.study.archive import Archive
from ironbench.study.balance import SizingRatio
from ironbench.study.claims import JudgedClaim
from ironbench.study.compare import ComparedMetric
from ironbench.study.curve import LittlesLaw, ThroughputCurve
from ironbench.study.device_io import Distribution
from ironbench.study.differences import Difference
from ironbench.study.rate import of_one_system
from ironbench.study.scaling import Scaling
from ironbench.study.searched import RunSearch
from ironbench.study.shares import Shares
from ironbench.study.subjects import (
    Subject,
    counted_in,
    streams,
)
from ironbench.study.summarise import Summary
from ironbench.study.timelines import LoadCourse

if TYPE_CHECKING:
    from ironbench.model.finding import Conclusion, Finding, Noise
    from ironbench.model.lab import Lab
    from ironbench.model.system import Setup
    from ironbench.study.bottleneck import TimeSpent
    from ironbench.study.ceiling import Ceiling
    from ironbench.study.comparability import Disturbance
    from ironbench.study.details import TrialDetails
    from ironbench.study.explain import Explanation
    from ironbench.study.factors import FactorInteraction, FactorValues
    from ironbench.study.growth import Growth
    from ironbench.study.same_load import SameLoad
    from ironbench.study.screen import Screen
    from ironbench.study.shares import Waterfall
    from ironbench.study.versions import BesideVersion


@dataclass(frozen=True, slots=True)
class RequiredOfPart:
    """A requirement of a run, judged for one subject."""

    name: str
    judged: JudgedClaim


@dataclass(frozen=True, slots=True)
class SubjectResults:
    """Results of one subject."""

    subject: Subject
    curve: ThroughputCurve
    standing: ComparedMetric | None
    """Throughput at the peak as a multiple of the peak throughput of the first system that has a peak. The value is
    None for this first system, and if this system has no peak."""
    reference: str
    """Name of the system with which `standing` compares. Empty if `standing` is None."""
    timeline: timelines.Timeline | None
    """Time line of a typical trial at the peak, or at the rate of an open loop."""
    course: LoadCourse | None
    """How the trial in `timeline` followed its load curve, or None if its load was constant."""
    response: timelines.Percentiles | None
    service: timelines.Percentiles | None
    """Service times of an open loop, or None for a closed loop, in which service times equal response times."""
    budgets: tuple[Shares, ...]
    waits: tuple[Shares, ...]
    balance: tuple[SizingRatio, ...]
    cores: int | None
    """Number of cores that the work can use on the machine that ran it. None if unknown."""
    little: LittlesLaw | None
    warnings: tuple[Note, ...]
    left_out: tuple[Note, ...]
    device_io: tuple[Distribution, ...] = ()
    """Latencies and sizes of emulated devices' I/Os, at the peak."""

    @property
    def name(self) -> str:
        return self.subject.name

    @property
    def configuration(self) -> Configuration:
        """The name of the system."""
        return Configuration(self.name)

    @property
    def metrics(self) -> dict[str, Summary]:
        """Metrics of the main trials. Empty if there are none."""
        return self.curve.main.metrics if self.curve.main else {}

    @property
    def main_trials(self) -> tuple[Record, ...]:
        """The trials at the peak or rate. Empty if there are none."""
        return tuple(self.curve.main.trials) if self.curve.main else ()

    @property
    def open_loop(self) -> bool:
        return self.subject.records[0].cell.load.rate is not None


@dataclass(frozen=True, slots=True)
class CellResults:
    """A configuration of a lab and its results."""

    configuration: Configuration
    setup: Setup
    planned: int
    """Number of planned trials."""
    trials: tuple[Record, ...]
    """For each block, in order of blocks, a trial: the first comparable attempt, or the last attempt if none is
    comparable."""
    metric: Summary | None
    """The lab's metric over the comparable trials."""
    budget: dict[str, float]
    """For each part, the mean share of the machine's CPU time. Empty if not measured."""
    balance: tuple[SizingRatio, ...]
    cores: int | None
    """Number of cores that the work can use on the machine that ran it. None if unknown."""
    time: TimeSpent | None
    """Breakdown of a transaction's time, or None if backends were not observed."""
    repeated: tuple[Record, ...] = ()
    """Other attempts, which are not in `trials`."""
    metrics: dict[str, Summary] = field(default_factory=dict)
    """Metrics over the comparable trials. Percentiles are computed over the transactions of all trials together."""

    @property
    def name(self) -> str:
        return self.configuration.name

    @property
    def usable(self) -> tuple[Record, ...]:
        return tuple(record for record in self.trials if record.status.comparable)

    @property
    def main_trials(self) -> tuple[Record, ...]:
        """Same as `usable`. This is the name of the same property of `SubjectResults`."""
        return self.usable


@dataclass(frozen=True, slots=True)
class Round:
    """Result of a round before the last one, based only on the round's own blocks. Later rounds do not change it."""

    number: int
    """1-based number of the round."""
    findings: tuple[Finding, ...]
    """Findings of the comparisons that the lab declares, followed by those of the comparisons in claims."""
    claims: tuple[JudgedClaim, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Results of a lab, or of runs of the same work. Empty fields were not measured."""

    work: str
    derived: str
    """Statement that must accompany these results wherever they are shown. Empty for most work."""
    started_at: str
    trials: int
    """Number of trials. For runs, all trials count. For a lab, all finished trials count, except attempts that were
    repeated."""
    differences: tuple[Difference, ...]
    """Facts that differ, with one value for each system or configuration."""
    shared: dict[str, str]
    """Facts that all subjects or configurations have in common."""
    details: TrialDetails
    """Details of the trials. For runs, they are details of the trials at the peak."""
    scripts: tuple[tuple[str, str], ...]
    """Name and text of every script that the trials ran."""

    parts: tuple[SubjectResults, ...] = ()
    """For runs: the systems with their results."""
    scalings: tuple[Scaling, ...] = ()
    """Scalability curve of every system that has one."""
    unlike: tuple[Note, ...] = ()
    """Reasons why the systems cannot be compared like for like."""
    footnotes: tuple[Note, ...] = ()
    run_searches: tuple[RunSearch, ...] = ()
    """For runs: results of finished searches for the best load."""
    requirements: tuple[RequiredOfPart, ...] = ()
    """For runs: verdicts on the requirements that each system's run declared (`--require`)."""

    lab: Lab | None = None
    """The declared lab. None for runs."""
    cells: tuple[CellResults, ...] = ()
    """Configurations of the lab that could be measured, in declared order."""
    findings: tuple[Finding, ...] = ()
    """Findings of the lab's declared comparisons of its declared metric, which have verdicts."""
    claimed: tuple[Finding, ...] = ()
    """Findings of further comparisons in claims, which also have verdicts."""
    others: tuple[Finding, ...] = ()
    """Findings of other metrics, without verdicts."""
    interactions: tuple[FactorInteraction, ...] = ()
    """For a full design: interactions, which show whether the joint effect of two changes is the product of their
    separate effects. Interactions have no verdicts."""
    same_loads: tuple[SameLoad, ...] = ()
    """Comparisons of response times at percentages of the baseline's peak throughput, without verdicts."""
    claims: tuple[JudgedClaim, ...] = ()
    too_little_time: tuple[Note, ...] = ()
    """A note if the budget gives too few blocks to decide claims about rates. The note contains the required budget.
    Otherwise empty."""
    last_stage: int = 1
    """For a lab: number of the last stage that the findings cover."""
    earlier: tuple[Round, ...] = ()
    """Earlier rounds."""
    growths: tuple[Growth, ...] = ()
    """Curves of configurations that differ only in the number of clients."""
    ceilings: tuple[Ceiling, ...] = ()
    """Measured gains from zero-latency parts, if the lab has such configurations."""
    beside_version: tuple[BesideVersion, ...] = ()
    """For comparisons of versions or engines: further differences between them, such as build features and defaults."""
    explanations: tuple[Explanation, ...] = ()
    """For the first comparisons: explanations of the difference, from throughput down to configuration."""
    levels: FactorValues | None = None
    """For a full design of two factors: results by factor values."""
    noise: Noise | None = None
    """Highest known run-to-run variation of this machine for the lab's metric and work."""
    disturbances: tuple[Disturbance, ...] = ()
    left_out: tuple[Note, ...] = ()
    warnings: tuple[Note, ...] = ()
    screen: Screen | None = None
    """For a lab with a screening design: the result of the screen. The other fields are then about the confirmation."""
    missing: int = 0
    """Number of unfinished trials in the started stages."""

    @property
    def skipped(self) -> tuple[tuple[str, str], ...]:
        """Configurations of the lab that could not be measured, with reasons."""
        return tuple((setup.cell.name, setup.skipped) for setup in self.lab.setups if setup.skipped) if self.lab else ()

    @property
    def searched(self) -> tuple[Setup, ...]:
        """Configurations whose load was chosen by a search."""
        return tuple(setup for setup in self.lab.setups if setup.best) if self.lab else ()

    @property
    def waterfalls(self) -> tuple[Waterfall, ...]:
        """For the first comparisons: how much each part of a transaction's time contributes to the difference."""
        return tuple(one.waterfall for one in self.explanations if one.waterfall)

    @property
    def dropped(self) -> tuple[Note, ...]:
        """Blocks left out of the paired analysis, and why."""
        return tuple(dict.fromkeys(one for finding in self.findings for one in finding.dropped))

    @property
    def main(self) -> list[SubjectResults | CellResults]:
        """For runs, the systems that have usable trials at their peak or rate. For a lab, the configurations."""
        return [*(part for part in self.parts if part.curve.main), *self.cells]

    @property
    def counts(self) -> tuple[str, str]:
        """Singular and plural name of a unit of work; `transaction` if there are several kinds of work."""
        first = [part.subject.records[0] for part in self.parts] or [one.usable[0] for one in self.cells if one.usable]
        return counted_in(first)

    @property
    def open_loop(self) -> bool:
        return any(part.open_loop for part in self.parts)

    @property
    def systems(self) -> list[list[SubjectResults]]:
        """The subjects of each system. If a system was measured at several rates, each rate is a subject of the same
        system."""
        groups: list[list[SubjectResults]] = []
        for part in self.parts:
            one = part.subject.records[0]
            own = next((group for group in groups if of_one_system(group[0].subject.records[0], one)), None)
            if own is None:
                groups.append([part])
            else:
                own.append(part)
        return groups

    @property
    def closed(self) -> tuple[SubjectResults, ...]:
        """Systems that were measured in a closed loop. Only these systems have a peak."""
        return tuple(part for part in self.parts if not part.open_loop)

    @property
    def place(self) -> Note:
        """Describes at which load the details of all systems were measured, for example at the peak."""
        peaks = [part.curve.peak for part in self.closed if part.curve.peak]
        clients = {peak.clients for peak in peaks}
        if any(streams(part.subject.records[0]) for part in self.parts):
            return note("measured-at", at="trial")
        if self.open_loop and not self.closed:
            return note("measured-at", at="rate")
        if peaks and all(peak.alone for peak in peaks):
            alone = next(iter(clients)) if len(clients) == 1 else None
            return note("measured-at", at="clients", clients=alone, or_rate=self.open_loop)
        return note("measured-at", at="peak", or_rate=self.open_loop)

    @property
    def metric(self) -> str:
        """Metric on which the lab's verdicts are based."""
        return self.lab.method.metric if self.lab else ""

    @property
    def baseline(self) -> str:
        """Configuration with which the lab compares others."""
        return self.lab.baseline if self.lab else ""

    def configuration(self, name: str) -> Configuration:
        """Returns a configuration of the lab by name; for runs, the name of a system."""
        return self.lab.configuration(name) if self.lab else Configuration(name)

    @property
    def complete(self) -> bool:
        """Whether every planned trial has a record."""
        return not self.missing

    @property
    def undecided_requirements(self) -> tuple[JudgedClaim, ...]:
        """Claims about one configuration that these trials do not decide."""
        return tuple(one for one in self.claims if one.claim.kind == VALUE and one.verdict == "undecided")

    @property
    def refuted(self) -> tuple[JudgedClaim, ...]:
        """Claims that this round or an earlier round refuted, each once."""
        every = (*(one for earlier in self.earlier for one in earlier.claims), *self.claims)
        return tuple({one.claim.text: one for one in every if one.verdict == "refuted"}.values())

    def ended(self, conclusion: Conclusion) -> tuple[Finding, ...]:
        """Returns the findings with this conclusion."""
        return tuple(finding for finding in self.findings if finding.conclusion is conclusion)


def script_texts(records: Sequence[Record], archive: Archive) -> tuple[tuple[str, str], ...]:
    """Returns the name and the text of every script of these trials, without duplicates."""
    keys = dict.fromkeys(script for record in records for script in record.scripts.items())
    return tuple((name, text) for name, key in keys if (text := archive.script(key)))
