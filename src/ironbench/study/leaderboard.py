"""Ranks published results and, in a separate ranking, the user's own results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ironbench import catalogue
from ironbench.catalogue.prices import Sheet
from ironbench.catalogue.published import Published, PublishedResult
from ironbench.errors import InputError, nearest
from ironbench.model.cost import CostBreakdown, CostRange, Offer
from ironbench.model.note import Note, note
from ironbench.model.purpose import AUXILIARY, Purpose
from ironbench.model.record import Record, Status, machine_of
from ironbench.records.described import described
from ironbench.records.index import Listed
from ironbench.records.work import work_name
from ironbench.study.archive import Archive
from ironbench.study.bill import bill
from ironbench.study.curve import Peak, alike, basis, curve, score_of
from ironbench.study.subjects import (
    Subject,
    by_work,
    machine_cores,
    pinned_cpus,
    subjects,
    usable_cores,
)
from ironbench.study.summarise import repeats

PER = ("core", "socket", "currency")
SORTS = ("score", *PER, "system", "cores")


@dataclass(frozen=True, slots=True)
class RankedResult:
    """A result in a ranking."""

    rank: int
    """Best possible rank according to the confidence intervals: one plus the number of results that are significantly
    better."""
    system: str
    processor: str
    sockets: int | None
    cores: int | None
    score: float
    per_core: float | None
    per_socket: float | None
    per_currency: float | None
    """Score per 1,000 units of licence cost, or None if no licence was selected."""
    other: Mapping[str, str | float]
    """Further columns of a published result."""
    estimate: bool = False
    """Whether the licence price is an estimate."""
    caveats: tuple[Note, ...] = ()
    """Limits of the licence with which the system may not reach the score."""
    worst_rank: int = 0
    """Worst possible rank according to the confidence intervals. Equal to `rank` if the rank is certain."""
    bounds: CostRange | None = None
    """95% confidence interval of the score (`summarise.repeats`). The value is None for a published score."""
    runs: int = 0
    """Number of own runs from which the score was computed."""
    trials: int = 0
    """Number of own trials from which the score was computed."""
    clients: int | None = None
    basis: Note | None = None
    """Description of the trials from which an own result was computed."""
    failed: float | None = None
    """Highest fraction of failed transactions among the trials, or None if not counted."""
    pinned_to: tuple[int, ...] = ()
    """CPUs to which the work was pinned. Empty for all CPUs."""
    emulated: bool = False

    def range(self, value: float | None) -> CostRange | None:
        """Returns the confidence interval of a value that is proportional to the score."""
        if value is None or self.bounds is None:
            return None
        return self.bounds.times(value / self.score)

    def reach(self, sort: str) -> tuple[float, float]:
        """Returns the confidence interval of the value by which results are ranked. If the value has no interval, both
        bounds equal the value."""
        value = -self.by(sort)[0]
        known = self.range(value) if sort in ("score", *PER) and value else None
        return (known.low, known.high) if known else (value, value)

    def by(self, sort: str) -> tuple[float, str]:
        """Returns a sort key that puts the best result first. Equal results are in alphabetical order."""
        values = {
            "score": self.score,
            "cores": float(self.cores or 0),
            "core": self.per_core,
            "socket": self.per_socket,
            "currency": self.per_currency,
        }
        return -(values.get(sort) or 0.0), self.system


@dataclass(frozen=True, slots=True)
class Ranking:
    """A table of either published or own results, never both."""

    title: str
    score: str
    sort: str
    source: str
    places: tuple[RankedResult, ...]
    currency: str = ""
    derived: str = ""
    """Statement that must accompany own results."""
    left_out: tuple[Note, ...] = ()
    """Own results that are not ranked, and why."""


def published(board: Published, sort: str, sheet: Sheet, licence: str) -> Ranking:
    """Ranks published results. Raises InputError if the price is unknown or has no core factor for a processor."""
    places = [_published(entry, sheet, licence) for entry in board.entries]
    currency = sheet.price(licence).currency if licence else ""
    return Ranking(board.title, board.score, sort, board.source, _ranked(places, sort), currency)


def peaks(rows: Sequence[Listed]) -> list[str]:
    """Returns the ids of the trials that may be part of a system's peak. Uses only rows of the index, so that few
    records must be read. An open loop has no peak. `rows`: index rows of one system, oldest first.
    """
    alike: dict[str, list[Listed]] = {}
    for row in rows:
        if row.rate is None and _measured(row):
            alike.setdefault(row.alike, []).append(row)
    return [row.id for group in alike.values() for row in _at_peak(group)]


def without_peak(rows: Sequence[Listed]) -> dict[str, Note]:
    """Returns the labels none of whose trials can be ranked, each with the reason."""
    labels: dict[str, list[Listed]] = {}
    for row in rows:
        if row.purpose not in AUXILIARY:
            labels.setdefault(row.label, []).append(row)
    reasons: dict[str, Note] = {}
    for label, own in labels.items():
        measured = [row for row in own if _measured(row)]
        if any(row.rate is None for row in measured):
            continue
        rates = sorted({row.rate for row in measured if row.rate is not None})
        if rates:
            reasons[label] = note("driven-open-loop", low=rates[0], high=rates[-1])
        else:
            reasons[label] = note("no-comparable-trial", statuses=tuple(dict.fromkeys(row.status for row in own)))
    return reasons


def steady(records: Sequence[Record]) -> tuple[list[Record], dict[str, Note]]:
    """Returns the trials with a constant number of clients. Some systems have no such trials. The labels of these
    systems are also returned, each with the reason."""
    kept = [record for record in records if record.cell.load.curve is None]
    ranked = {record.system.label for record in kept}
    along = dict.fromkeys(record.system.label for record in records if record.system.label not in ranked)
    return kept, dict.fromkeys(along, note("driven-along-curve"))


def _measured(row: Listed) -> bool:
    return row.throughput is not None and row.purpose not in AUXILIARY and Status(row.status).comparable


def _at_peak(rows: Sequence[Listed]) -> list[Listed]:
    """Selects the trials at the peak as `curve` does. If there are confirmation trials, the last of them determines the
    number of clients. Otherwise, it is the fewest clients whose throughput is indistinguishable from the highest."""
    candidates = [row for row in rows if row.purpose == Purpose.CONFIRMATION]
    if candidates:
        best = candidates[-1].clients
    else:
        candidates, by_clients = list(rows), dict[int, list[float]]()
        for row in rows:
            by_clients.setdefault(row.clients, []).append(row.throughput or 0.0)
        best = alike(by_clients)[0]
    kept = [row for row in candidates if row.clients == best]
    # One trial with another number of clients is kept. It shows that the peak was chosen among several numbers of
    # clients and was not confirmed.
    others = [row for row in candidates if row.clients != best and row.purpose != Purpose.CONFIRMATION]
    return [*kept, *sorted(others, key=lambda row: row.throughput or 0.0)[:1]]


def rankings_of_records(
    records: Sequence[Record], archive: Archive, sort: str, sheet: Sheet, licence: str
) -> list[Ranking]:
    """Returns one ranking for each work. A ranking orders the peaks of all systems that have done this work by the
    workload's score metric."""
    rankings = []
    currency = sheet.price(licence).currency if licence else ""
    for group in by_work(records):
        measured = [(subject, peak) for subject in subjects(group) if (peak := curve(subject).peak) is not None]
        score = score_of([peak for _, peak in measured])
        places = [
            _ranked_result(subject, peak, score, archive, sheet, licence)
            for subject, peak in measured
            if score in peak.metrics
        ]
        if places:
            title = f"own results: {work_name(group[0].choice)}"
            derived = described(group[0]).derived
            words = catalogue.metric(score).words
            rankings.append(Ranking(title, words, sort, "records", _ranked(places, sort), currency, derived))
    return rankings


def checked_sort(sort: str) -> str:
    """Checks a sort column. Raises InputError that suggests the nearest name."""
    if sort not in SORTS:
        raise InputError(f"--sort {sort}", "is not a column to sort by", nearest(sort, list(SORTS)))
    return sort


def _published(entry: PublishedResult, sheet: Sheet, licence: str) -> RankedResult:
    paid = _licences(entry.system, entry.processor, entry.sockets, entry.cores, sheet, licence)
    return RankedResult(
        rank=0,
        system=entry.system,
        processor=entry.processor,
        sockets=entry.sockets,
        cores=entry.cores,
        score=entry.score,
        per_core=entry.per_core,
        per_socket=entry.score / entry.sockets,
        per_currency=_per_thousand(entry.score, paid),
        other=entry.other,
        estimate=bool(paid and paid.estimate),
        caveats=paid.caveats if paid else (),
    )


def _ranked_result(
    subject: Subject, peak: Peak, metric: str, archive: Archive, sheet: Sheet, licence: str
) -> RankedResult:
    record, score = peak.trials[0], peak.metrics[metric]
    machine = archive.machine(machine_of(record))
    cpu, held = machine.get("cpu", {}), pinned_cpus(record)
    cores, sockets = usable_cores(record, machine_cores(machine)), cpu.get("sockets")
    failed = [one.metrics["failed_fraction"] for one in peak.trials if "failed_fraction" in one.metrics]
    if held and sockets != 1:
        sockets = None  # the record does not contain on which sockets the CPUs are
    model = str(cpu.get("model", ""))
    # If the number of sockets is unknown, its bounds are 1 and the smaller of the machine's number of sockets and
    # number of cores. If both bounds give the same cost, the cost is known.
    counts = (sockets,) if sockets else (1, min(cpu.get("sockets") or cores or 1, cores or 1))
    bills = [_licences(subject.name, model, count, cores, sheet, licence) for count in counts] if cores else []
    paid = bills[0] if len({one.total for one in bills if one}) == 1 else None
    known = repeats(peak.trials, metric)
    value = known.centre if known.values else score.centre
    return RankedResult(
        rank=0,
        system=subject.name,
        processor=model,
        sockets=sockets,
        cores=cores,
        score=value,
        per_core=value / cores if cores else None,
        per_socket=value / sockets if sockets else None,
        per_currency=_per_thousand(value, paid),
        other={},
        estimate=bool(paid and paid.estimate),
        caveats=paid.caveats if paid else (note("sockets-unknown", licence=licence),) if any(bills) else (),
        bounds=known.range(value),
        runs=known.runs,
        trials=len(known.of_trials),
        clients=peak.clients,
        basis=basis(peak),
        failed=max(failed, default=None),
        pinned_to=held,
        emulated=bool(record.system.layout.devices),
    )


def _licences(
    system: str, processor: str, sockets: int, cores: int, sheet: Sheet, licence: str
) -> CostBreakdown | None:
    if not licence:
        return None
    return bill(Offer(system, "", 1, sockets, cores, processor, buy=(licence,)), sheet, None)


def _per_thousand(score: float, paid: CostBreakdown | None) -> float | None:
    return score * 1000 / float(paid.total) if paid and paid.total else None


def _ranked(places: Sequence[RankedResult], sort: str) -> tuple[RankedResult, ...]:
    """Ranks results, the best first. If confidence intervals overlap, each result has a range of possible ranks.

    (Goldstein and Spiegelhalter, Journal of the Royal Statistical Society A 159, 1996, on uncertainty of league
    tables.)
    """
    ordered = sorted(places, key=lambda place: place.by(sort))
    if sort == "system":
        return tuple(replace(place, rank=rank, worst_rank=rank) for rank, place in enumerate(ordered, start=1))
    reaches = [place.reach(sort) for place in ordered]
    return tuple(
        replace(
            place,
            rank=1 + sum(other_low > high for other_low, _ in reaches),
            worst_rank=len(ordered) - sum(other_high < low for _, other_high in reaches),
        )
        for place, (low, high) in zip(ordered, reaches, strict=True)
    )
