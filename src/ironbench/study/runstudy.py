"""Builds the studies of runs from their records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ironbench.model.lab import Configuration
from ironbench.model.note import Note, NoteRange, note
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record, machine_of
from ironbench.model.sample import IN_TABLES, too_few
from ironbench.records.work import work_name
from ironbench.study import timelines
from ironbench.study.archive import EMPTY, Archive
from ironbench.study.balance import balance
from ironbench.study.claims import requirement
from ironbench.study.comparability import left_out, trial_warnings, unlike
from ironbench.study.compare import standing
from ironbench.study.curve import MOST_POOLED, NOT_POOLED, ThroughputCurve, curve, little, shortfall
from ironbench.study.details import details
from ironbench.study.device_io import distributions
from ironbench.study.differences import differences, facts, shared
from ironbench.study.rate import clients_asked, of_one_system
from ironbench.study.scaling import scalings
from ironbench.study.searched import RunSearch, of_runs
from ironbench.study.shares import budgets, main_events, waits
from ironbench.study.study import RequiredOfPart, Study, SubjectResults, script_texts
from ironbench.study.subjects import (
    Subject,
    by_work,
    counted_in,
    machine_cores,
    subjects,
    usable_cores,
)
from ironbench.study.timelines import course


def studies(
    records: Sequence[Record], archive: Archive = EMPTY, derived: Mapping[str, str] | None = None
) -> tuple[Study, ...]:
    """Returns one study for each work among `records`.

    `derived`: for each workload, the statement that must accompany its results.
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
    known = [
        own | facts((part.main_trials or part.subject.records)[0], archive)
        for own, part in zip(clients, parts, strict=True)
    ]
    return Study(
        work=work_name(records[0].choice),
        derived=derived.get(records[0].choice.workload, ""),
        started_at=min(record.started_at for record in records),
        trials=len(records),
        differences=differences(known),
        shared=shared(known),
        details=details(
            [(part.configuration, part.main_trials) for part in parts if part.main_trials],
            archive,
            in_blocks=False,
            all_trials=[(Configuration(subject.name), subject.usable) for subject in systems if subject.usable],
        ),
        scripts=script_texts(records, archive),
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
    """Sorts the subjects of each open-loop system by rate. The subjects may be in a different order, because a search
    does not measure rates in ascending order. The order of systems is unchanged."""

    def place(subject: Subject) -> tuple[int, float]:
        own = subject.records[0]
        first = next(at for at, one in enumerate(systems) if one is subject or of_one_system(own, one.records[0]))
        return first, own.cell.load.rate or 0.0

    return tuple(sorted(systems, key=place))


def _required(systems: Sequence[Subject]) -> tuple[RequiredOfPart, ...]:
    """Judges the requirements of the last run of each system. Only the trials of this run count."""
    found = []
    for subject in systems:
        last = subject.records[-1]
        own = [record for record in subject.records if record.series == last.series]
        found += [RequiredOfPart(subject.name, requirement(claim, own)) for claim in last.requirements]
    return tuple(found)


def _footnotes(records: Sequence[Record], searches: Sequence[RunSearch]) -> tuple[Note, ...]:
    """Returns the footnotes to the tables of a run."""
    notes = [*too_few([one for one in records if one.status.comparable], counted_in(records)[1], IN_TABLES)]
    loads = [record.cell.load for record in records]
    one, many = counted_in(records)
    if any(load.rate is None for load in loads):
        notes.append(note("closed-loop", unit=one))
    if any(load.rate is not None for load in loads):
        notes.append(note("open-loop", unit=one, units=many))
    concluded = {one.series: one.result.note for one in searches}
    # If the result of a search cannot be computed, the result in its records is used. In old records, it is a sentence.
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
    """Compares each system with the first one and returns notes on the differences. If the first system was also
    measured at the other system's rate, the trials at this rate are compared."""
    notes: dict[Note, None] = {}
    own = [one for one in systems if one is systems[0] or of_one_system(one.records[0], systems[0].records[0])]
    for other in systems[1:]:
        rate, same = other.records[0].cell.load.rate, other in own
        first = next((one for one in own if not same and one.records[0].cell.load.rate == rate), systems[0])
        notes.update(dict.fromkeys(unlike(first.usable, other.usable, same)))
    return tuple(notes)


def _results(
    subject: Subject, own: ThroughputCurve, first: ThroughputCurve | None, events: Sequence[str], archive: Archive
) -> SubjectResults:
    at_peak = own.main.trials if own.main else ()
    # Shares of time are taken from all trials. The sweep's trials choose the peak by throughput, which does not bias
    # their shares of time.
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
