"""Everything a report shows, of runs or of a lab, computed once; formats only write it down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ironbench.model.lab import VALUE
from ironbench.model.note import Note, note
from ironbench.model.record import Record, machine_of
from ironbench.records.work import work_name
from ironbench.study import timelines
from ironbench.study.archive import EMPTY, Archive
from ironbench.study.balance import SizingRatio, balance
from ironbench.study.comparability import doubts, left_out, unlike
from ironbench.study.compare import Standing, standing
from ironbench.study.curve import MOST_POOLED, NOT_POOLED, Little, ThroughputCurve, curve, little, shortfall
from ironbench.study.device_io import Distribution, ReadCost, RoleLatency, distributions, read_costs, role_latencies
from ironbench.study.differences import Difference, differences, facts, shared
from ironbench.study.footnotes import footnotes
from ironbench.study.inside import OtherPlan, Use, other_plans, uses
from ironbench.study.load_curve import LoadCourse, course
from ironbench.study.queries import Against, Queries, against, queries
from ironbench.study.rate import clients_asked, of_one_system
from ironbench.study.scaling import Scaling, scalings
from ironbench.study.shares import Shares, budgets, main_events, waits
from ironbench.study.statements import StatementTimings, times
from ironbench.study.subjects import (
    Subject,
    by_work,
    cores_held,
    counted_in,
    machine_cores,
    streams,
    subjects,
)
from ironbench.study.summarise import Summary
from ironbench.study.workers import Workers, by_worker

if TYPE_CHECKING:
    from ironbench.model.finding import Conclusion, Finding, Noise
    from ironbench.model.lab import Lab
    from ironbench.model.system import Setup
    from ironbench.study.bottleneck import TimeSpent
    from ironbench.study.ceiling import Ceiling
    from ironbench.study.claims import Judged
    from ironbench.study.comparability import Disturbance
    from ironbench.study.explain import Explanation
    from ironbench.study.factors import Contrast, FactorInteraction, Levels
    from ironbench.study.growth import Growth
    from ironbench.study.same_load import SameLoad
    from ironbench.study.screen import Screen
    from ironbench.study.shares import Waterfall
    from ironbench.study.versions import BesideVersion


@dataclass(frozen=True, slots=True)
class SubjectResults:
    """What was measured of one subject."""

    subject: Subject
    curve: ThroughputCurve
    standing: Standing | None
    timeline: timelines.Timeline | None
    """Of a typical trial at the peak, or at the rate of an open loop."""
    course: LoadCourse | None
    """Of the same trial, where its load followed a curve."""
    response: timelines.Percentiles | None
    service: timelines.Percentiles | None
    """Open loop only: in a closed loop it is the response time."""
    budgets: tuple[Shares, ...]
    waits: tuple[Shares, ...]
    balance: tuple[SizingRatio, ...]
    cores: int | None
    """That its work may use, of the machine that did it; None: unknown."""
    little: Little | None
    warnings: tuple[Note, ...]
    left_out: tuple[Note, ...]
    device_io: tuple[Distribution, ...] = ()
    """Latencies and sizes of the I/Os of emulated devices, at the peak."""

    @property
    def name(self) -> str:
        return self.subject.name

    @property
    def metrics(self) -> dict[str, Summary]:
        """Of its main trials; empty where there are none."""
        return self.curve.main.metrics if self.curve.main else {}

    @property
    def open_loop(self) -> bool:
        return self.subject.records[0].cell.load.rate is not None


@dataclass(frozen=True, slots=True)
class CellResults:
    """One cell and what was measured of it."""

    name: str
    setup: Setup
    planned: int
    """Trials that were planned for it."""
    trials: tuple[Record, ...]
    """The last attempt of each block, in order of blocks, of whatever status."""
    metric: Summary | None
    """The lab's metric over the trials that may be compared."""
    budget: dict[str, float]
    """Part → mean share of the machine's CPU time; empty where it was not measured."""
    balance: tuple[SizingRatio, ...]
    cores: int | None
    """That its work may use, of the machine that did it; None: unknown."""
    time: TimeSpent | None
    """Where the time of a transaction goes; None where backends were not observed."""
    repeated: tuple[Record, ...] = ()
    """Attempts that another one has replaced."""
    metrics: dict[str, Summary] = field(default_factory=dict)
    """All, over the trials that may be compared; percentiles of all their transactions together, as everywhere on a
    page."""

    @property
    def usable(self) -> tuple[Record, ...]:
        return tuple(record for record in self.trials if record.status.comparable)


@dataclass(frozen=True, slots=True)
class Effect:
    """A finding with the names its comparison goes by in this lab."""

    finding: Finding
    contrast: Contrast
    losses: tuple[Note, ...] = ()
    """Notes on settings that can lose data, which only one of the two sides has."""


@dataclass(frozen=True, slots=True)
class Round:
    """What a round before the last one ended with, on its own blocks alone; no later round takes it back."""

    number: int
    """1-based."""
    effects: tuple[Effect, ...]
    """The lab's declared comparisons, then those of its claims."""
    claims: tuple[Judged, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """All results of a lab, or of runs that did the same work. Empty: not measured."""

    work: str
    derived: str
    """A sentence that must stand wherever these results are shown; "" for most work."""
    started_at: str
    trials: int
    """Of runs all, of a lab those that are over, whatever their status, without attempts that were repeated."""
    differences: tuple[Difference, ...]
    """Facts that differ, one value for each subject or cell."""
    shared: dict[str, str]
    """Facts that all subjects or cells have in common."""
    queries: Queries | None
    """Query by query; None where the work is not made of queries."""
    against: tuple[Against, ...]
    """Queries that go against the trend, with the differences of their plans."""
    role_latencies: tuple[RoleLatency, ...]
    """Time of an I/O by role; empty where no device was emulated."""
    read_costs: tuple[ReadCost, ...]
    """CPU time of a read on real devices, where one side reads what another has cached."""
    scripts: tuple[tuple[str, str], ...]
    """Name and text of every script that was driven."""

    timed: tuple[StatementTimings, ...] = ()
    """Times of the commands of scripts, where they were asked for; of runs at the peak."""
    workers: tuple[Workers, ...] = ()
    """Of runs at the peak; empty where ironbench itself drove them."""
    inside: tuple[Use, ...] = ()
    """What servers said of the trials; of runs at the peak. Of labs by slices it is of `observed`."""
    observed: tuple[Record, ...] = ()
    """Of labs by slices: one trial per configuration with observers and statement times, which enters no finding."""
    other_plans: tuple[OtherPlan, ...] = ()
    """Commands whose plan is another one than in the first of them."""
    parts: tuple[SubjectResults, ...] = ()
    """The subjects of runs with their results."""
    scalings: tuple[Scaling, ...] = ()
    """The scalability law's curve of every subject that has one."""
    unlike: tuple[Note, ...] = ()
    """What keeps the subjects from being compared like for like."""
    footnotes: tuple[Note, ...] = ()

    lab: Lab | None = None
    """What was declared; None of runs."""
    cells: tuple[CellResults, ...] = ()
    """The lab's cells that could be measured, in the order declared."""
    skipped: tuple[tuple[str, str], ...] = ()
    """Cells that could not, each with why."""
    effects: tuple[Effect, ...] = ()
    """The lab's declared comparisons of its declared metric: these carry verdicts."""
    claimed: tuple[Effect, ...] = ()
    """What else the claims are about: these carry verdicts too."""
    others: tuple[Effect, ...] = ()
    """Other metrics, reported without deciding anything."""
    interactions: tuple[FactorInteraction, ...] = ()
    """Of a full design: whether changes do together what they do alone; without a verdict."""
    same_loads: tuple[SameLoad, ...] = ()
    """Response times at shares of the baseline's peak; without verdicts."""
    claims: tuple[Judged, ...] = ()
    too_little_time: tuple[Note, ...] = ()
    """That the budget held too few blocks to decide claims about rates, and what budget would; empty where it did."""
    look: int = 1
    """Of a lab: number of the last stage that the findings are about."""
    earlier: tuple[Round, ...] = ()
    """Rounds before the one that all this is about."""
    growths: tuple[Growth, ...] = ()
    """Cells that differ in the number of clients alone, as curves."""
    ceilings: tuple[Ceiling, ...] = ()
    beside_version: tuple[BesideVersion, ...] = ()
    """Of comparisons of versions or engines: what else differs."""
    """What parts made free bring, where the lab has such cells."""
    explanations: tuple[Explanation, ...] = ()
    """Of the first comparisons: the difference from throughput down to configuration."""
    waterfalls: tuple[Waterfall, ...] = ()
    """Of the first comparisons: which part of a transaction's time the difference comes from."""
    levels: Levels | None = None
    """Of a full design of two factors: the cells by their levels."""
    noise: Noise | None = None
    """The highest floor known of this machine for the lab's metric and its work."""
    disturbances: tuple[Disturbance, ...] = ()
    dropped: tuple[Note, ...] = ()
    """Blocks that did not enter the paired analysis, and why."""
    left_out: tuple[Note, ...] = ()
    warnings: tuple[Note, ...] = ()
    screen: Screen | None = None
    """Of a lab that screens factors first: what the screen saw. All else is of its confirmation."""
    searched: tuple[Setup, ...] = ()
    """Cells of a lab with the loads that a search chose for them."""
    missing: int = 0
    """Planned trials of the stages begun that are not over."""

    @property
    def counts(self) -> tuple[str, str]:
        """What a unit of the work is called, one and many."""
        return counted_in([part.subject.records[0] for part in self.parts])

    @property
    def open_loop(self) -> bool:
        return any(part.open_loop for part in self.parts)

    @property
    def systems(self) -> list[list[SubjectResults]]:
        """The subjects by system: rates of one system are one."""
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
        """Those that were driven in a closed loop: only they have a peak."""
        return tuple(part for part in self.parts if not part.open_loop)

    @property
    def place(self) -> Note:
        """Where the details of all subjects were measured."""
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
        """By which the lab decides."""
        return self.lab.method.metric if self.lab else ""

    @property
    def baseline(self) -> str:
        """The cell that the lab compares others with."""
        return self.lab.baseline if self.lab else ""

    @property
    def complete(self) -> bool:
        """Whether every planned trial has left a record."""
        return not self.missing

    @property
    def undecided_requirements(self) -> tuple[Judged, ...]:
        """Claims about one configuration that these trials do not decide."""
        return tuple(one for one in self.claims if one.claim.kind == VALUE and one.verdict == "undecided")

    @property
    def refuted(self) -> tuple[Judged, ...]:
        """Claims that this round or an earlier one refuted, each once."""
        every = (*(one for earlier in self.earlier for one in earlier.claims), *self.claims)
        return tuple({one.claim.text: one for one in every if one.verdict == "refuted"}.values())

    def ended(self, conclusion: Conclusion) -> tuple[Effect, ...]:
        """The comparisons that ended so."""
        return tuple(effect for effect in self.effects if effect.finding.conclusion is conclusion)


def studies(
    records: Sequence[Record], archive: Archive = EMPTY, derived: Mapping[str, str] | None = None
) -> tuple[Study, ...]:
    """One study for each work among `records`. `derived`: workload → sentence that must stand wherever it is shown."""
    return tuple(_study(group, archive, derived or {}) for group in by_work(records))


def _study(records: Sequence[Record], archive: Archive, derived: Mapping[str, str]) -> Study:
    systems = subjects(records)
    pool_points = len(records) <= MOST_POOLED
    curves = [curve(subject, archive, pool_points=pool_points) for subject in systems]
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
        parts=parts,
        scalings=scalings(
            [(part.name, [trial for point in part.curve.points for trial in point.trials]) for part in parts]
        ),
        unlike=_unlike(systems),
        footnotes=(*footnotes(records), *(() if pool_points else (NOT_POOLED,))),
    )


def _unlike(systems: Sequence[Subject]) -> tuple[Note, ...]:
    """Each against the first system: at the same rate, where that was measured."""
    notes: dict[Note, None] = {}
    own = [one for one in systems if one is systems[0] or of_one_system(one.records[0], systems[0].records[0])]
    for other in systems[1:]:
        rate, same = other.records[0].cell.load.rate, other in own
        first = next((one for one in own if not same and one.records[0].cell.load.rate == rate), systems[0])
        notes.update(dict.fromkeys(unlike(first.usable, other.usable, same)))
    return tuple(notes)


def script_texts(records: Sequence[Record], archive: Archive) -> tuple[tuple[str, str], ...]:
    """Name and text of every script of these trials, each once."""
    keys = dict.fromkeys(script for record in records for script in record.scripts.items())
    return tuple((name, text) for name, key in keys if (text := archive.script(key)))


def _results(
    subject: Subject, own: ThroughputCurve, first: ThroughputCurve | None, events: Sequence[str], archive: Archive
) -> SubjectResults:
    at_peak = own.main.trials if own.main else ()
    # Their shares of time chose no peak: trials of the sweep count as fresh ones do.
    bars = [(clients, [one for one in subject.usable if one.cell.load.clients == clients]) for clients in own.clients]
    open_loop = subject.records[0].cell.load.rate is not None
    reference = (at_peak or subject.records)[0]
    machine, engine = archive.machine(machine_of(reference)), archive.engine(reference.engine)
    line = timelines.timeline(timelines.typical(at_peak), archive) if at_peak else None
    return SubjectResults(
        subject=subject,
        curve=own,
        standing=standing(own, first) if first else None,
        timeline=line,
        course=course(timelines.typical(at_peak), line) if line else None,
        response=timelines.percentiles(at_peak, archive),
        service=timelines.percentiles(at_peak, archive, "service_time") if open_loop else None,
        budgets=budgets(bars),
        waits=waits(bars, events),
        balance=balance(at_peak, machine, engine) if at_peak else (),
        cores=cores_held(reference, machine_cores(machine)),
        little=little(timelines.typical(at_peak)) if at_peak else None,
        warnings=(*doubts(subject.records), *shortfall(own)),
        left_out=left_out(subject.records),
        device_io=distributions(at_peak, archive),
    )


def _reference(part: SubjectResults) -> Record:
    return (part.curve.main.trials if part.curve.main else part.subject.records)[0]
