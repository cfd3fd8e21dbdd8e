"""Computes everything that a report on runs or on a lab shows. Output formats only render these results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ironbench.model.lab import VALUE, Configuration
from ironbench.model.note import Note, NoteRange, note
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record, machine_of
from ironbench.model.sample import IN_TABLES, too_few
from ironbench.records.work import work_name
from ironbench.study import timelines
from ironbench.study.archive import EMPTY, Archive
from ironbench.study.balance import SizingRatio, balance
from ironbench.study.claims import JudgedClaim, requirement
from ironbench.study.comparability import left_out, trial_warnings, unlike
from ironbench.study.compare import ComparedMetric, standing
from ironbench.study.curve import MOST_POOLED, NOT_POOLED, LittlesLaw, ThroughputCurve, curve, little, shortfall
from ironbench.study.device_io import Distribution, ReadCost, RoleLatency, distributions, read_costs, role_latencies
from ironbench.study.differences import Difference, differences, facts, shared
from ironbench.study.inside import OtherPlan, ServerUse, other_plans, uses
from ironbench.study.profile import profile
from ironbench.study.profiled import Profile
from ironbench.study.queries import ContraryQuery, Queries, against, queries
from ironbench.study.rate import clients_asked, of_one_system
from ironbench.study.scaling import Scaling, scalings
from ironbench.study.searched import RunSearch, of_runs
from ironbench.study.shares import Shares, budgets, main_events, waits
from ironbench.study.statements import StatementTimings, times
from ironbench.study.subjects import (
    Subject,
    by_work,
    counted_in,
    machine_cores,
    streams,
    subjects,
    usable_cores,
)
from ironbench.study.summarise import Summary
from ironbench.study.timelines import LoadCourse, course
from ironbench.study.workers import Workers, by_worker

if TYPE_CHECKING:
    from ironbench.model.finding import Conclusion, Finding, Noise
    from ironbench.model.lab import Lab
    from ironbench.model.system import Setup
    from ironbench.study.bottleneck import TimeSpent
    from ironbench.study.ceiling import Ceiling
    from ironbench.study.comparability import Disturbance
    from ironbench.study.explain import Explanation
    from ironbench.study.factors import Contrast, FactorInteraction, FactorValues
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
    """Throughput at the peak, compared with the first system that has a peak; None for that first system itself, and if
    this system has no peak."""
    reference: str
    """Name of that first system; empty if `standing` is None."""
    timeline: timelines.Timeline | None
    """Time line of a typical trial at the peak, or at the rate of an open loop."""
    course: LoadCourse | None
    """Load curve of the same trial, if its load followed a curve."""
    response: timelines.Percentiles | None
    service: timelines.Percentiles | None
    """Service times of an open loop; None for a closed loop, in which they equal response times."""
    budgets: tuple[Shares, ...]
    waits: tuple[Shares, ...]
    balance: tuple[SizingRatio, ...]
    cores: int | None
    """Number of cores that the work can use on the machine that ran it; None if unknown."""
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
        """Metrics of the main trials; empty if there are none."""
        return self.curve.main.metrics if self.curve.main else {}

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
    """One trial per block, in order of blocks: the first comparable attempt, or else the last attempt."""
    metric: Summary | None
    """The lab's metric over the comparable trials."""
    budget: dict[str, float]
    """For each part, the mean share of the machine's CPU time; empty if not measured."""
    balance: tuple[SizingRatio, ...]
    cores: int | None
    """Number of cores that the work can use on the machine that ran it; None if unknown."""
    time: TimeSpent | None
    """Breakdown of a transaction's time; None if backends were not observed."""
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


@dataclass(frozen=True, slots=True)
class Effect:
    """A finding, with the name of its comparison in this lab."""

    finding: Finding
    contrast: Contrast
    losses: tuple[Note, ...] = ()
    """Notes on settings with which data can be lost and that only one of the two sides has."""
    too_slow: tuple[tuple[Configuration, int, int], ...] = ()
    """Sides that may be slower here than on the real device. For each side: the configuration, the number of trials in
    which emulation was slower than the device's model, and the number of all trials."""


@dataclass(frozen=True, slots=True)
class Round:
    """Result of a round before the last one, based only on the round's own blocks. Later rounds do not change it."""

    number: int
    """1-based number of the round."""
    effects: tuple[Effect, ...]
    """The lab's declared comparisons, then the claims' comparisons."""
    claims: tuple[JudgedClaim, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Results of a lab, or of runs of the same work. Empty fields were not measured."""

    work: str
    derived: str
    """Statement that must accompany these results wherever they are shown; empty for most work."""
    started_at: str
    trials: int
    """Number of trials. For runs, these are all trials; for a lab, the finished trials of any status, without repeated
    attempts."""
    differences: tuple[Difference, ...]
    """Facts that differ, with one value for each system or configuration."""
    shared: dict[str, str]
    """Facts that all subjects or configurations have in common."""
    queries: Queries | None
    """Times of single queries; None if the work does not consist of queries."""
    against: tuple[ContraryQuery, ...]
    """Queries that go against the trend, with differences between their plans."""
    role_latencies: tuple[RoleLatency, ...]
    """I/O latency by role; empty if no device was emulated."""
    read_costs: tuple[ReadCost, ...]
    """CPU time per read on real devices, if one configuration reads data that another configuration has cached."""
    scripts: tuple[tuple[str, str], ...]
    """Name and text of every script that was run."""

    timed: tuple[StatementTimings, ...] = ()
    """Times of commands in scripts, if they were recorded; for runs, at the peak."""
    workers: tuple[Workers, ...] = ()
    """Results by worker; for runs, at the peak. Empty without separate workers."""
    inside: tuple[ServerUse, ...] = ()
    """Server statistics of the trials; for runs, at the peak. For labs that use slices, the statistics are from the
    trials in `observed`."""
    observed: tuple[Record, ...] = ()
    """For labs that use slices: the trials with observers and statement times, one per configuration. No finding uses
    these trials."""
    other_plans: tuple[OtherPlan, ...] = ()
    """Commands for which a plan differs from the first system's plan."""
    profiles: tuple[Profile, ...] = ()
    """Profiles of the configurations or systems; for runs, at the peak."""
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
    """For runs: judgements of the requirements that the run declared (`--require`), by system."""

    lab: Lab | None = None
    """The declared lab; None for runs."""
    cells: tuple[CellResults, ...] = ()
    """Configurations of the lab that could be measured, in declared order."""
    skipped: tuple[tuple[str, str], ...] = ()
    """Configurations that could not be measured, with reasons."""
    effects: tuple[Effect, ...] = ()
    """The lab's declared comparisons of its declared metric, which have verdicts."""
    claimed: tuple[Effect, ...] = ()
    """Further comparisons in claims, which also have verdicts."""
    others: tuple[Effect, ...] = ()
    """Comparisons of other metrics, without verdicts."""
    interactions: tuple[FactorInteraction, ...] = ()
    """For a full design: whether the joint effect of changes is the product of their separate effects. Interactions
    have no verdicts."""
    same_loads: tuple[SameLoad, ...] = ()
    """Comparisons of response times at percentages of the baseline's peak throughput. They have no verdicts."""
    claims: tuple[JudgedClaim, ...] = ()
    too_little_time: tuple[Note, ...] = ()
    """Note that the budget allows too few blocks to decide claims about rates, and which budget is needed; otherwise
    empty."""
    look: int = 1
    """For a lab: number of the last stage that the findings cover."""
    earlier: tuple[Round, ...] = ()
    """Earlier rounds."""
    growths: tuple[Growth, ...] = ()
    """Curves of configurations that differ only in the number of clients."""
    ceilings: tuple[Ceiling, ...] = ()
    """Measured gains from zero-latency parts, if the lab has such configurations."""
    beside_version: tuple[BesideVersion, ...] = ()
    """For comparisons of versions or engines: further differences, such as build features and defaults."""
    explanations: tuple[Explanation, ...] = ()
    """For the first comparisons: explanations of the difference, from throughput down to configuration."""
    waterfalls: tuple[Waterfall, ...] = ()
    """For the first comparisons: how much each part of a transaction's time contributes to the difference."""
    levels: FactorValues | None = None
    """For a full design of two factors: results by factor values."""
    noise: Noise | None = None
    """Highest known run-to-run variation of this machine for the lab's metric and work."""
    disturbances: tuple[Disturbance, ...] = ()
    dropped: tuple[Note, ...] = ()
    """Blocks left out of the paired analysis, and why."""
    left_out: tuple[Note, ...] = ()
    warnings: tuple[Note, ...] = ()
    screen: Screen | None = None
    """For a lab with a screening design: the result of the screen. All other fields are then about the confirmation."""
    searched: tuple[Setup, ...] = ()
    """Configurations whose load was chosen by a search."""
    missing: int = 0
    """Number of unfinished trials in the started stages."""

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
        """The systems, each with its subjects. Different rates of one system are one group."""
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
        """The load at which the details of all systems were measured."""
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

    def ended(self, conclusion: Conclusion) -> tuple[Effect, ...]:
        """Returns the comparisons with this conclusion."""
        return tuple(effect for effect in self.effects if effect.finding.conclusion is conclusion)


def studies(
    records: Sequence[Record], archive: Archive = EMPTY, derived: Mapping[str, str] | None = None
) -> tuple[Study, ...]:
    """Returns one study for each work among `records`.

    `derived`: for a workload, the statement that must accompany its results.
    """
    return tuple(_study(group, archive, derived or {}) for group in by_work(records))


def _study(records: Sequence[Record], archive: Archive, derived: Mapping[str, str]) -> Study:
    systems = _rates_ascending(subjects(records))
    pool_points = len(records) <= MOST_POOLED
    curves = [curve(subject, archive, pool_points=pool_points) for subject in systems]
    searches = of_runs(records, archive)
    events = main_events([record for subject in systems for record in subject.usable])
    first_peak = next((one for one in curves if one.peak), None)
    parts = tuple(
        _results(subject, own, None if own is first_peak else first_peak, events, archive)
        for subject, own in zip(systems, curves, strict=True)
    )
    clients = clients_asked([part.subject.records for part in parts])
    known = [own | facts(_reference(part), archive) for own, part in zip(clients, parts, strict=True)]
    usable = [(subject.name, subject.usable) for subject in systems if subject.usable]
    at_peaks = [(part.name, part.curve.main.trials) for part in parts if part.curve.main]
    return Study(
        work=work_name(records[0].choice),
        derived=derived.get(records[0].choice.workload, ""),
        started_at=min(record.started_at for record in records),
        trials=len(records),
        differences=differences(known),
        shared=shared(known),
        queries=(by_query := queries(usable, in_blocks=False)),
        against=against(by_query, usable, archive),
        role_latencies=role_latencies(at_peaks),
        read_costs=read_costs(at_peaks),
        scripts=script_texts(records, archive),
        timed=times(at_peaks, archive, in_blocks=False),
        workers=by_worker(at_peaks, archive),
        inside=(used := uses(at_peaks, archive)),
        other_plans=other_plans(used),
        profiles=tuple(
            one for name, trials in at_peaks if (one := profile(Configuration(name), trials, archive)) is not None
        ),
        parts=parts,
        scalings=scalings(
            [(part.name, [trial for point in part.curve.points for trial in point.trials]) for part in parts]
        ),
        unlike=_unlike(systems),
        footnotes=(*_footnotes(records, searches), *(() if pool_points else (NOT_POOLED,))),
        run_searches=searches,
        requirements=_required(systems),
    )


def _rates_ascending(systems: Sequence[Subject]) -> tuple[Subject, ...]:
    """Sorts the subjects of each open-loop system by rate, because a search measures rates in a different order. The
    order of systems is unchanged."""

    def place(subject: Subject) -> tuple[int, float]:
        own = subject.records[0]
        first = next(at for at, one in enumerate(systems) if one is subject or of_one_system(own, one.records[0]))
        return first, own.cell.load.rate or 0.0

    return tuple(sorted(systems, key=place))


def _required(systems: Sequence[Subject]) -> tuple[RequiredOfPart, ...]:
    """Judges the requirements that the last run of each system declared, over the trials of that run."""
    found = []
    for subject in systems:
        last = subject.records[-1]
        own = [record for record in subject.records if record.series == last.series]
        found += [RequiredOfPart(subject.name, requirement(claim, own)) for claim in last.requirements]
    return tuple(found)


def _footnotes(records: Sequence[Record], searches: Sequence[RunSearch] = ()) -> tuple[Note, ...]:
    """Returns the footnotes to the tables of a run."""
    notes = [*too_few([one for one in records if one.status.comparable], counted_in(records)[1], IN_TABLES)]
    loads = [record.cell.load for record in records]
    one, many = counted_in(records)
    if any(load.rate is None for load in loads):
        notes.append(note("closed-loop", unit=one))
    if any(load.rate is not None for load in loads):
        notes.append(note("open-loop", unit=one, units=many))
    concluded = {one.series: one.result.note for one in searches}
    # If a search has no computed result, the result in its records is used. In old records, this is a sentence.
    recorded = [one.search_result for one in records if one.search_result and one.series not in concluded]
    notes += [note("search-found", result=result) for result in dict.fromkeys([*concluded.values(), *recorded])]
    if any(record.purpose == Purpose.CONFIRMATION for record in records):
        kinds = {"peak" if load.rate is None else "rate" for load in loads}
        notes += [note("confirmed", what=what) for what in sorted(kinds)]
    if any(record.budget.emulation > 0 for record in records):
        most = max(record.budget.emulation for record in records)
        notes.append(note("emulation-cost", cpu_share=most))
    delayed = [record for record in records if "added_latency_s" in record.metrics and record.system.latency_s]
    if delayed:
        declared_s = [record.system.latency_s or 0.0 for record in delayed]
        added_s = [record.metrics["added_latency_s"] for record in delayed]
        cores = max(record.metrics["relay_cpu_cores"] for record in delayed)
        notes.append(note("latency-added", declared_s=_range(declared_s), added_s=_range(added_s), cores=cores))
    return tuple(notes)


def _range(values: Sequence[float]) -> NoteRange:
    return NoteRange(min(values), max(values))


def _unlike(systems: Sequence[Subject]) -> tuple[Note, ...]:
    """Returns notes on differences between the first system and each other system. If the first system was also
    measured at the other system's rate, the trials at this rate are compared."""
    notes: dict[Note, None] = {}
    own = [one for one in systems if one is systems[0] or of_one_system(one.records[0], systems[0].records[0])]
    for other in systems[1:]:
        rate, same = other.records[0].cell.load.rate, other in own
        first = next((one for one in own if not same and one.records[0].cell.load.rate == rate), systems[0])
        notes.update(dict.fromkeys(unlike(first.usable, other.usable, same)))
    return tuple(notes)


def script_texts(records: Sequence[Record], archive: Archive) -> tuple[tuple[str, str], ...]:
    """Returns name and text of every script of these trials, each once."""
    keys = dict.fromkeys(script for record in records for script in record.scripts.items())
    return tuple((name, text) for name, key in keys if (text := archive.script(key)))


def _results(
    subject: Subject, own: ThroughputCurve, first: ThroughputCurve | None, events: Sequence[str], archive: Archive
) -> SubjectResults:
    at_peak = own.main.trials if own.main else ()
    # The peak is chosen by throughput and not by shares of time, so for shares of time, sweep trials are as valid as
    # confirmation trials.
    bars = [(clients, [one for one in subject.usable if one.cell.load.clients == clients]) for clients in own.clients]
    open_loop = subject.records[0].cell.load.rate is not None
    reference = (at_peak or subject.records)[0]
    machine, engine = archive.machine(machine_of(reference)), archive.engine(reference.engine)
    line = timelines.timeline(timelines.typical(at_peak), archive) if at_peak else None
    return SubjectResults(
        subject=subject,
        curve=own,
        standing=(compared := standing(own, first) if first else None),
        reference=first.name if first and compared else "",
        timeline=line,
        course=course(timelines.typical(at_peak), line) if line else None,
        response=timelines.percentiles(at_peak, archive),
        service=timelines.percentiles(at_peak, archive, "service_time") if open_loop else None,
        budgets=budgets(bars),
        waits=waits(bars, events),
        balance=balance(at_peak, machine, engine) if at_peak else (),
        cores=usable_cores(reference, machine_cores(machine)),
        little=little(timelines.typical(at_peak)) if at_peak else None,
        warnings=(*trial_warnings(subject.records), *shortfall(own)),
        left_out=left_out(subject.records),
        device_io=distributions(at_peak, archive),
    )


def _reference(part: SubjectResults) -> Record:
    return (part.curve.main.trials if part.curve.main else part.subject.records)[0]
