"""Compares two systems in each workload with which both were measured. The systems are compared at their peaks and at
equal numbers of clients.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isclose
from typing import Any

import msgspec

from ironbench import catalogue
from ironbench.errors import InputError
from ironbench.model.note import Note, note
from ironbench.model.purpose import AUXILIARY, Purpose
from ironbench.model.record import Record, Status, machine_of
from ironbench.model.system import Choice, Load
from ironbench.records.described import described
from ironbench.records.work import same_work, short_name, work
from ironbench.study.archive import Archive
from ironbench.study.comparability import causes, work_apart
from ironbench.study.compare import ComparedMetric, ConfigurationComparison, MeanRatio, mean_ratio
from ironbench.study.curve import ThroughputCurve, curve, held_out_peak, metrics_of
from ironbench.study.differences import NOT_SET, Difference, differences, differing, facts
from ironbench.study.rate import Rate, Ratios
from ironbench.study.subjects import Subject, leading, machine_cores, machines_among, marked, usable_cores
from ironbench.study.summarise import repeats

_HERTZ = re.compile(r"@\s*([\d.]+)\s*GHz", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WorkLead:
    """Comparison of two systems in one work: at the peak of each system, and at equal numbers of clients."""

    work: str
    curves: tuple[ThroughputCurve, ThroughputCurve]
    """Curves of both systems. The trials that measure a peak are not the trials that chose it, but confirmation trials
    after a sweep, or trials of other blocks in a lab."""
    peaks: ConfigurationComparison | None
    """Comparison of the peaks, or of both systems at the declared rate. The value is None if a side has neither. For
    open loops, throughput is left out. Response times are also left out if the rate was not sustained."""
    by_clients: tuple[tuple[int, ComparedMetric], ...]
    """Throughput at each number of clients with which both systems were measured in a closed loop. Empty for work whose
    result is not a throughput."""

    @property
    def clients(self) -> tuple[int, int]:
        a, b = (one.main.clients if one.main else 0 for one in self.curves)
        return a, b

    @property
    def rates(self) -> tuple[Rate, Rate] | None:
        """Rates of both systems in an open loop, and whether they were sustained."""
        a, b = (one.rate for one in self.curves)
        return (a, b) if a and b else None

    @property
    def confirmed(self) -> bool:
        """Whether the peaks were measured by other trials than those that chose them."""
        peaks = [one.peak for one in self.curves if one.peak]
        return self.rates is not None or (len(peaks) == 2 and all(one.confirmed for one in peaks))

    @property
    def alone(self) -> bool:
        """Whether both systems were measured with only one and the same number of clients, so that there is no peak."""
        a, b = (one.peak for one in self.curves)
        return a is not None and b is not None and a.alone and b.alone and a.clients == b.clients


@dataclass(frozen=True, slots=True)
class Leads:
    """The result of `lead`."""

    a: str
    b: str
    margin: float
    """Margin within which ratios are called equal."""
    works: tuple[WorkLead, ...]
    cores: tuple[int | None, int | None]
    hertz_ratio: float | None
    """Clock frequency of B divided by the clock frequency of A. 1 if both ran on the same machine. The value is None if
    the two frequencies are not of the same kind."""
    hertz_kind: str
    """Kind of the frequencies: `highest` (from the kernel) or `nominal` (from the processor's name). Empty if unknown
    or on the same machine."""
    differences: tuple[Difference, ...]
    """Differences in machines, engines, settings, layouts, versions and load. Only work with which both systems were
    measured counts."""
    caveats: tuple[Note, ...]
    """Notes on flagged trials at the peaks."""
    derived: tuple[str, ...]
    """Statements that must accompany results of these workloads."""
    apart: tuple[Note, ...]
    """Notes on work with which only one system was measured, or both with different versions of ironbench."""
    in_turns: bool
    """Whether both are configurations of one lab that were measured in the same blocks."""

    @property
    def clock(self) -> float | None:
        """Ratio of the clock frequencies that a report shows, or None if the ratio is unknown or 1."""
        return None if self.hertz_ratio is None or isclose(self.hertz_ratio, 1.0) else self.hertz_ratio

    @property
    def cores_differ(self) -> bool:
        """Whether the numbers of cores differ or one of the numbers is unknown."""
        return None in self.cores or self.cores[0] != self.cores[1]


def leads(
    a: str, records_a: Sequence[Record], b: str, records_b: Sequence[Record], archive: Archive, margin: float
) -> Leads:
    """Compares two systems. Raises InputError if they have no work in common, or if a side contains several systems."""
    versions = {record.software.get("ironbench", "") for record in (*records_a, *records_b)}
    names = _names((*records_a, *records_b))
    sides = tuple(_by_work(side, names, len(versions) > 1) for side in (records_a, records_b))
    both = [work for work in sides[0] if work in sides[1]]
    if not both:
        raise _nothing_in_common(f"{a} and {b}", records_a, records_b, names)
    for name, side in ((a, sides[0]), (b, sides[1])):
        require_one_system(name, {work: side[work] for work in both}, archive)
    pairs = [(sides[0][work][0], sides[1][work][0]) for work in both]
    rows = [row for pair in pairs for row in differences([facts(one, archive) for one in pair])]
    machines = [archive.machine(machine_of(one)) for one in pairs[0]]
    ratio, kind = _hertz(*machines) if machine_of(pairs[0][0]) != machine_of(pairs[0][1]) else (1.0, "")
    every = (*records_a, *records_b)
    in_turns = {one.purpose for one in every} - {*AUXILIARY} == {Purpose.LAB} and len({r.series for r in every}) == 1
    works = tuple(_work(work, Subject(a, sides[0][work]), Subject(b, sides[1][work]), in_turns) for work in both)
    derived = dict.fromkeys(described(sides[0][work][0]).derived for work in both)
    return Leads(
        a=marked(a, records_a),
        b=marked(b, records_b),
        margin=margin,
        works=works,
        cores=_cores(pairs[0], machines),
        hertz_ratio=ratio,
        hertz_kind=kind,
        differences=tuple(dict.fromkeys(rows)),
        caveats=tuple(caveat for work in works for caveat in _suspicions(work)),
        derived=tuple(filter(None, derived)),
        apart=tuple(_apart(a, b, sides, both)),
        in_turns=in_turns,
    )


def outcome(one: MeanRatio, margin: float, better: str = "higher") -> Note:
    """Returns a note that states by how much B is better or worse than A, or why this is unknown."""
    if not one.known:
        return note("lead-of-one-trial")
    if one.single_run:
        return note("lead-of-one-run")
    if 1 / (1 + margin) <= one.low and one.high <= 1 + margin:
        return note("lead-equal", margin=margin)
    if one.clear:
        return note("lead", ratio=one.ratio, higher_is_better=better == "higher")
    return note("lead-inconclusive")


def _work(work: str, a: Subject, b: Subject, in_turns: bool) -> WorkLead:
    one, other = _curve(a), _curve(b)
    metrics = leading(a.records[0])
    peaks = None
    if one.main and other.main:
        peaks = ConfigurationComparison(
            note("load-of-peak"), _rows(one.main.trials, other.main.trials, metrics, in_turns)
        )
    counts = sorted({*one.clients} & {*other.clients})
    closed = metrics[0] == "throughput" and not (one.rate or other.rate)
    by_clients = tuple(
        (clients, row)
        for clients in (counts if closed else ())
        for row in _rows(trials_of(one, clients), trials_of(other, clients), ("throughput",), in_turns)
    )
    return WorkLead(work, (one, other), peaks, by_clients)


def _rows(
    a: Sequence[Record], b: Sequence[Record], metrics: Sequence[str], in_turns: bool
) -> tuple[ComparedMetric, ...]:
    """Compares `metrics` with confidence intervals. Leaves out metrics that a system lacks, and metrics without a
    meaningful ratio."""
    of_a, of_b, reasons = metrics_of(a, metrics), metrics_of(b, metrics), Ratios(a, b)
    rows = []
    for metric in metrics:
        if metric in of_a and metric in of_b and not reasons.lacking(metric):
            means = mean_ratio(repeats(a, metric, in_turns), repeats(b, metric, in_turns))
            rows += (
                [ComparedMetric(metric, catalogue.better(metric), of_a[metric], of_b[metric], means=means)]
                if means
                else []
            )
    return tuple(rows)


def trials_of(side: ThroughputCurve, clients: int) -> list[Record]:
    """Returns all comparable trials with this number of clients, including confirmation trials."""
    own = [record for point in side.points if point.clients == clients for record in point.trials]
    fresh = [record for record in side.confirmations if record.cell.load.clients == clients]
    return [*own, *(record for record in fresh if record not in own)]


def _curve(subject: Subject) -> ThroughputCurve:
    """Returns the curve. If possible, the trials that measure its peak are not the trials that chose it."""
    result = curve(subject)
    if result.peak is None or result.peak.confirmed:
        return result
    return replace(result, main=held_out_peak(subject) or result.peak)


def _suspicions(work: WorkLead) -> list[Note]:
    """Returns notes on the flagged trials at each side's peak."""
    notes = []
    for side in work.curves:
        trials = side.main.trials if side.main else ()
        suspect = [trial for trial in trials if trial.status is Status.SUSPECT]
        if suspect:
            alone = side.peak is not None and side.peak.alone
            where = "rate" if side.rate else "alone" if alone else "peak"
            values = {"work": work.work, "where": where, "side": side.name, "trials": len(suspect), "of": len(trials)}
            notes.append(note("peak-flagged", **values, causes=tuple(causes(suspect))))
    return notes


def _names(records: Sequence[Record]) -> dict[str, str]:
    """Returns the name of each work by the work's key. Two kinds of work have the same name only if their contents are
    equal."""
    known: list[tuple[Choice, str]] = []
    names: dict[str, str] = {}
    for record in records:
        if (key := work(record)) in names:
            continue
        same = next((name for choice, name in known if same_work(choice, record.choice)), None)
        if same is None:
            own = short_name(record.choice)
            others = sum(name == own or name.startswith(f"{own} #") for _, name in known)
            same = f"{own} #{others + 1}" if others else own
            known.append((record.choice, same))
        names[key] = same
    return names


def _by_work(
    records: Sequence[Record], names: Mapping[str, str], versions_differ: bool
) -> dict[str, tuple[Record, ...]]:
    """Groups trials by work, load and ironbench version, because a different version may do different work."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        if record.purpose not in AUXILIARY:
            version = record.software.get("ironbench", "")
            drove = f" (ironbench {version})" if versions_differ and version else ""
            asked = " ".join((names[work(record)], *_load_options(record.cell.load)))
            groups.setdefault(f"{asked}{drove}", []).append(record)
    return {work: tuple(group) for work, group in groups.items()}


def _load_options(load: Load) -> list[str]:
    """Lists the load options that affect results and differ from their defaults."""
    usual = Load()
    words = []
    if load.rate is not None:
        words.append(f"rate={load.rate_share * 100:g}%" if load.rate_share is not None else f"rate={load.rate:g}")
        words += [f"arrivals={load.arrivals}"] if load.arrivals != usual.arrivals else []
    words += [f"think-time={load.think_time_s:g}s"] if load.think_time_s else []
    words += [f"reconnect={load.reconnect}"] if load.reconnect else []
    words += [f"max-tries={load.max_tries}"] if load.max_tries != usual.max_tries else []
    words += [f"protocol={load.protocol}"] if load.protocol != usual.protocol else []
    return words


def _nothing_in_common(sides: str, a: Sequence[Record], b: Sequence[Record], names: Mapping[str, str]) -> InputError:
    if _by_work(a, names, False).keys() & _by_work(b, names, False).keys():
        return InputError(
            sides,
            "did the same work with different versions of ironbench, which may generate the load differently",
            "measure both with one version",
        )
    scripts, differing = list[str](), list[str]()
    for one in work_apart(a, b):
        known = [(value,) if isinstance(value, str) else value for value in one.values.values()]
        (scripts if "script" in one.values else differing).append(" vs. ".join(map(", ".join, known)))
    return InputError(
        sides,
        "have no work in common: " + "; ".join([*differing, *(f"{one} has different contents" for one in scripts)]),
        "measure both with the same workload, options, scripts, data and load",
    )


def _apart(a: str, b: str, sides: Sequence[Mapping[str, Any]], both: Sequence[str]) -> list[Note]:
    return [
        note("work-of-one-side", side=name, work=work)
        for name, side in zip((a, b), sides, strict=True)
        for work in side
        if work not in both
    ]


def _cores(pair: tuple[Record, Record], machines: Sequence[Mapping[str, Any]]) -> tuple[int | None, int | None]:
    first, second = (usable_cores(one, machine_cores(of)) for one, of in zip(pair, machines, strict=True))
    return first, second


def _hertz(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[float | None, str]:
    """Returns the ratio of the clock frequencies and their kind. If the kernel reports the highest frequency of both
    machines, these are used. Otherwise, the nominal frequencies in the processors' names are used.

    A highest frequency is never compared with a nominal frequency, which is lower. Virtual machines rarely see the
    highest frequency.
    """
    highest = [machine.get("cpu", {}).get("max_hz") for machine in (a, b)]
    if all(highest):
        return float(highest[1]) / float(highest[0]), "highest"
    named = [_HERTZ.search(str(machine.get("cpu", {}).get("model", ""))) for machine in (a, b)]
    if named[0] and named[1]:
        return float(named[1][1]) / float(named[0][1]), "nominal"
    return None, ""


_MOST_FACTS = 3
"""If systems have the same label, at most this many differing facts are named."""


def require_one_system(name: str, works: Mapping[str, Sequence[Record]], archive: Archive) -> None:
    """Checks that the trials of a side are of one system on one machine. Raises InputError if they are of two machines.
    Also raises InputError if the trials of one work are of two systems or have two kinds of load.

    `works`: the trials of the side, grouped by work.
    """
    trials = [record for group in works.values() for record in group]
    of = machines_among(trials)
    machines = {of(record): record for record in trials}
    if len(machines) > 1:
        two = list(machines.values())[:2]
        named = _first_facts(two, archive, ("machine.", "client."))
        raise InputError(
            name,
            f"selects trials of two machines{named}",
            f"select one {_selector(two)}, or use a different --label for each machine",
        )
    for name_of_work, group in works.items():
        changed = [
            record
            for before, record in zip([None, *group[:-1]], group, strict=True)
            if before is None or (before.system, before.engine) != (record.system, record.engine)
        ]
        systems = {_system(record, archive): record for record in changed}
        if len(systems) > 1:
            two = list(systems.values())[:2]
            named = _first_facts(two, archive, ("system.", "engine.version"))
            raise InputError(
                name,
                f"selects trials of {name_of_work} on two systems{named}",
                f"select one {_selector(two)}, or use a different --label for each system",
            )
        loads = {load.shape: record for load, record in {record.cell.load: record for record in group}.items()}
        if len(loads) > 1:
            two = list(loads.values())[:2]
            named = _first_facts(two, archive, ("load.",))
            raise InputError(
                name,
                f"selects trials of {name_of_work} under two kinds of load{named}",
                f"select one {_selector(two)}, or use a different --label for each load",
            )


def _first_facts(two: Sequence[Record], archive: Archive, prefixes: tuple[str, ...]) -> str:
    """Describes in parentheses the first differences between the two systems. Only facts with these prefixes count.
    Returns an empty text if there are no differences."""
    known = [facts(record, archive) for record in two]
    rows = [row for row in differing(known) if row.startswith(prefixes)]
    words = "; ".join(
        f"{row} {' vs. '.join(flat.get(row, NOT_SET) for flat in known)}" for row in rows[:_MOST_FACTS]
    ) + (f" and {len(rows) - _MOST_FACTS} more" if len(rows) > _MOST_FACTS else "")
    return f" ({words})" if words else ""


def _selector(two: Sequence[Record]) -> str:
    series = list(dict.fromkeys(record.series for record in two))
    return f"series ({' or '.join(series)})" if len(series) > 1 else "trial"


def _system(record: Record, archive: Archive) -> str:
    version = archive.engine(record.engine).get("version", "") if record.engine else ""
    return msgspec.json.encode((replace(record.system, label=""), version), order="sorted").decode()
