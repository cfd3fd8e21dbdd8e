"""Computes what each system costs and achieves, and which one meets a target most cheaply."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from ironbench import catalogue
from ironbench.catalogue.prices import Sheet
from ironbench.errors import InputError
from ironbench.model.cost import CostBreakdown, CostRange, Offer
from ironbench.model.note import Note, note
from ironbench.model.record import Record, Status, machine_of
from ironbench.plan.offers import SystemsFile
from ironbench.records.work import work, work_name
from ironbench.study.archive import EMPTY, Archive
from ironbench.study.bill import bill
from ironbench.study.comparability import causes, left_out, merged_notes
from ironbench.study.compare import mean_ratio
from ironbench.study.curve import at_its_peak, highest, score_of
from ironbench.study.differences import UNKNOWN, differing, facts_of
from ironbench.study.subjects import (
    machine_cores,
    machines_among,
    pinned_cpus,
    usable_cores,
)
from ironbench.study.summarise import Repeats, repeats
from ironbench.study.target import Attained, Target, attained, may_count

OTHER_HARDWARE = "systems-file-differs"
ROUNDING = 1e-9
"""Relative rounding error of a ratio."""
ALIKE = 0.10
"""Maximum relative difference between memory sizes that count as equal. A GiB is 7% more than a GB, and kernels reserve
some memory."""


@dataclass(frozen=True, slots=True)
class SystemCost:
    """Cost and performance of one system."""

    name: str
    bill: CostBreakdown | None
    """Cost breakdown of the system, or None if no prices were given."""
    cores: int | None
    score: CostRange | None
    """The workload's score at the peak that was measured, or the score in the systems file.

    The value is None if there is a target. A target requires an open loop, in which the requested rate determines
    throughput, so throughput does not measure the system.
    """
    estimate: bool
    """Whether the score is an estimate."""
    source: str
    """Source of the score."""
    target: Attained | None = None
    basis: Note | None = None
    """Description of the trials from which the score was computed, or None if there is a target."""
    runs: int = 0
    """Number of runs from which the score was computed. 0 for a score from the systems file."""
    trials: int = 0
    """Number of trials from which the score was computed, or by which it was decided whether the target is met."""
    flagged: int = 0
    """Number of flagged trials among these trials."""
    caveats: tuple[Note, ...] = ()
    """Contradictions between the systems file and the recorded machine, followed by the notes of the trials."""
    repeats: Repeats | None = None
    """The values behind a score from records."""

    @property
    def priced(self) -> bool:
        """Whether the price is known and above zero, so that work per price is defined."""
        return self.bill is not None and self.bill.total > 0

    @property
    def other_hardware(self) -> bool:
        """Whether the system's records are from hardware that differs from the systems file."""
        return any(caveat.code == OTHER_HARDWARE for caveat in self.caveats)

    @property
    def per_core(self) -> CostRange | None:
        return self.score.times(1 / self.cores) if self.score and self.cores else None

    @property
    def per_thousand(self) -> CostRange | None:
        """Score per 1,000 units of the currency."""
        if self.score is None or self.bill is None or not self.priced:
            return None
        return self.score.times(1000 / float(self.bill.total))

    def work_over(self, other: SystemCost) -> CostRange | None:
        """Returns this system's work as a multiple of the other system's work. Returns None if one of them has no
        score.

        For records, this is the ratio of geometric means with Welch's 95% confidence interval, as in `lead`. For scores
        in the systems file, the bounds follow from the bounds of both scores.
        """
        if self.repeats and other.repeats:
            means = mean_ratio(other.repeats, self.repeats)
            return CostRange(means.low, means.high, means.ratio) if means else None
        return self.score.over(other.score) if self.score and other.score else None

    def work_per_price_over(self, other: SystemCost) -> CostRange | None:
        """Returns this system's work per price as a multiple of the other system's work per price. Returns None without
        prices or scores."""
        work = self.work_over(other)
        if work is None or self.bill is None or other.bill is None or not (self.priced and other.priced):
            return None
        return work.times(float(other.bill.total / self.bill.total))


@dataclass(frozen=True, slots=True)
class RankedSystem:
    """A system in the ranking by work per price."""

    row: SystemCost
    rank: int
    """One plus the number of systems that do significantly more work per price. Systems with the same rank are tied."""
    behind: SystemCost | None
    """The best of the systems that do significantly more work per price. None for rank 1."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The result of `ironbench cost`."""

    question: str
    target: Target | None
    unit: str
    rows: tuple[SystemCost, ...]
    work: str
    """Name of the recorded work. Empty if there are no records."""
    cheapest: SystemCost | None
    """The cheapest system that meets the target. None without a target."""
    nearest: SystemCost | None
    """The system that comes closest to the target, if no system meets it."""
    tied: tuple[SystemCost, ...] = ()
    """Other systems that are as good: they cost the same as `cheapest`, or cannot be distinguished from `nearest`."""
    undecided: tuple[SystemCost, ...] = ()
    """Systems cheaper than `cheapest` that may or may not meet the target."""
    unmeasured: tuple[SystemCost, ...] = ()
    """Systems cheaper than `cheapest` that were not measured at the target's rate."""
    ranking: tuple[RankedSystem, ...] = ()
    """Systems by work per price, the best first. Empty if there is a target. Systems without a price, or whose score
    has no confidence interval, are not ranked."""
    notes: tuple[Note, ...] = ()
    """Reasons why selected records give no score."""
    derived: tuple[str, ...] = ()
    """Statements that must accompany scores from these records, for example because of a benchmark's fair-use rules."""


@dataclass(frozen=True, slots=True)
class StoredTrials:
    """Stored trials, with the stored facts about their machines."""

    records: Mapping[str, Sequence[Record]] = field(default_factory=dict)
    """Records by label."""
    machines: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Known machine fingerprints by key."""
    archive: Archive = EMPTY
    """Source of the records' histograms."""


def costs(
    offers: SystemsFile | None, sheet: Sheet, measured: StoredTrials, target: Target | None = None, currency: str = ""
) -> Costs:
    """Computes cost and performance of all offers, and the performance of recorded systems without an offer.

    Raises InputError for invalid prices or currencies, for one target with records of different work, and for one offer
    with records of several systems.
    """
    named = offers.offers if offers else ()
    records, machines, archive = measured.records, measured.machines, measured.archive
    notes: tuple[Note, ...] = ()
    if target is None:
        work, records, notes = _scoring(named, records)
    else:
        work, records = _of_one_work(records, target)
    metric = "" if target else _score(records)
    into = currency or (offers.currency if offers else "")
    rows = []
    for offer in named:
        own = _of_one_system(offer, records)
        contradictions = tuple(_contradictions(offer, own, machines))
        # Records from hardware other than the offered hardware show neither the work per price of the offer nor whether
        # it meets a target.
        did = _of_other_hardware(offer.name, target) if contradictions else None
        did = did or _performance(offer.name, own, target, metric, archive)
        row = _offered(offer, did, offers, sheet, into)
        rows.append(replace(row, caveats=(*contradictions, *row.caveats)))
    offered = {offer.records for offer in named}
    rows += [
        _unpriced(name, group, machines, _performance(name, group, target, metric, archive))
        for label, labelled in records.items()
        if label not in offered
        for name, group in _systems(label, labelled).items()
    ]
    _one_currency(rows)
    met = [row for row in rows if row.target and row.target.meets]
    priced = [row for row in met if row.bill is not None]
    cheapest = min(priced, key=_price, default=None)
    closest = None if met or target is None else _closest(rows)
    tied = tuple(row for row in priced if cheapest and row is not cheapest and _price(row) == _price(cheapest))
    tied += tuple(row for row in rows if closest and row is not closest and _as_near(row, closest))
    cheaper = [row for row in rows if row.bill and row.target and cheapest and _price(row) < _price(cheapest)]
    undecided = [row for row in cheaper if row.target and row.target.undecided]
    unmeasured = [row for row in cheaper if row.target and row.target.best is None]
    # `offers.unit` is the unit of the scores in the systems file. Such scores are never mixed with scores from records.
    unit = "" if target else catalogue.metric(metric).words if metric else offers.unit if offers else ""
    question = offers.question if offers else ""
    return Costs(
        question=question,
        target=target,
        unit=unit,
        rows=tuple(rows),
        work=work,
        cheapest=cheapest,
        nearest=closest,
        tied=tied,
        undecided=tuple(undecided),
        unmeasured=tuple(unmeasured),
        ranking=() if target else tuple(_ranked(rows)),
        notes=notes,
    )


@dataclass(frozen=True, slots=True)
class _Performance:
    """The performance of one system according to its records."""

    score: CostRange | None
    runs: int = 0
    target: Attained | None = None
    basis: Note | None = None
    trials: tuple[Record, ...] = ()
    """Trials that the result is based on."""
    left_out: tuple[Note, ...] = ()
    repeats: Repeats | None = None

    def row(self, name: str, bill: CostBreakdown | None, cores: int | None) -> SystemCost:
        return SystemCost(
            name,
            bill,
            cores,
            score=self.score,
            estimate=False,
            source="records",
            target=self.target,
            basis=self.basis,
            runs=self.runs,
            trials=len(self.trials),
            flagged=sum(record.status is Status.SUSPECT for record in self.trials),
            caveats=(*self.left_out, *_notes(self.trials)),
            repeats=self.repeats,
        )


def _ranked(rows: Sequence[SystemCost]) -> list[RankedSystem]:
    """Ranks systems by work per price. A system is better than another one if the 95% confidence interval of their
    ratio excludes 1."""
    known = sorted(
        (row for row in rows if row.per_thousand and row.per_thousand.bounded), key=_work_per_price, reverse=True
    )
    ranked = []
    for row in known:
        better = [one for one in known if (ratio := one.work_per_price_over(row)) and ratio.low > 1 + ROUNDING]
        ranked.append(RankedSystem(row, 1 + len(better), better[0] if better else None))
    return sorted(ranked, key=lambda one: one.rank)


def _work_per_price(row: SystemCost) -> float:
    found = row.per_thousand
    if found is None:
        return 0.0
    return found.centre if found.centre is not None else math.sqrt(found.low * found.high)


def _performance(
    name: str, records: Sequence[Record], target: Target | None, metric: str, archive: Archive
) -> _Performance:
    if target is not None:
        result = attained(name, records, target, archive)
        driven = [record for record in records if may_count(record, target)]
        used = result.best.trials if result.best else tuple(one for one in driven if one.status.comparable)
        return _Performance(None, target=result, trials=used, left_out=left_out(driven))
    best = highest(records)
    if best is None or metric not in best.metrics:
        return _Performance(None)
    known = repeats(best.trials, metric)
    if not known.values:
        return _Performance(None)
    return _Performance(
        known.range(known.centre), known.runs, basis=at_its_peak(best), trials=tuple(best.trials), repeats=known
    )


def _of_other_hardware(name: str, target: Target | None) -> _Performance:
    """Returns the result for a system whose records are from different hardware. The performance of this system is
    unknown."""
    if target is None:
        return _Performance(None)
    return _Performance(None, target=Attained(name, None, False, note("target-of-other-hardware")))


def _notes(trials: Sequence[Record]) -> list[Note]:
    """Returns the notes of the trials. In older records, the causes of flags are not among the notes, so they are
    added."""
    notes = merged_notes(trials)
    suspect = [record for record in trials if record.status is Status.SUSPECT]
    return [*notes, *(cause for cause in causes(suspect) if cause not in notes)]


def _score(records: Mapping[str, Sequence[Record]]) -> str:
    """Returns the metric by which systems are compared if there is no target. Returns an empty text if there is no such
    metric."""
    peaks = [peak for group in records.values() if (peak := highest(group)) is not None]
    return score_of(peaks) if peaks else ""


def _offered(offer: Offer, did: _Performance, offers: SystemsFile | None, sheet: Sheet, currency: str) -> SystemCost:
    own = bill(offer, sheet, offers.years if offers else None, currency) if offer.buy else None
    if did.target is not None or did.score is not None:
        return did.row(offer.name, own, offer.all_cores)
    if offer.score is not None:
        whole = offer.score * offer.servers
        return SystemCost(offer.name, own, offer.all_cores, CostRange(whole, whole), offer.servers > 1, offer.source)
    if offer.share is not None:
        known = {one.name: one for one in offers.offers} if offers else {}
        whole = (known[offer.share_of].score or 0.0) * offer.servers
        return SystemCost(offer.name, own, offer.all_cores, offer.share.times(whole), True, offer.source)
    return SystemCost(offer.name, own, offer.all_cores, None, False, "")


def _unpriced(
    name: str, records: Sequence[Record], machines: Mapping[str, Mapping[str, Any]], did: _Performance
) -> SystemCost:
    own = usable_cores(records[0], machine_cores(machines.get(machine_of(records[0]), {})))
    return did.row(name, None, own)


def _scoring(
    offers: Sequence[Offer], records: Mapping[str, Sequence[Record]]
) -> tuple[str, Mapping[str, Sequence[Record]], tuple[Note, ...]]:
    """Selects the records from which scores are computed if there is no target. Returns the work's name, these records,
    and notes on the other records. Costs are shown even if no record gives a score.
    """
    if not records:
        return "", {}, ()
    labels = tuple(records)
    if any(offer.score is not None or offer.share is not None for offer in offers):
        return "", {}, (note("records-not-used", labels=labels),)
    works = {work(record): work_name(record.choice) for group in records.values() for record in group}
    if len(works) > 1:
        return "", {}, (note("scores-of-different-work", labels=labels, works=tuple(works.values())),)
    kept, notes = dict(records), []
    for offer in offers:
        if len(systems := _systems(offer.records, kept.get(offer.records, ()))) > 1:
            notes.append(
                note("system-without-score", system=offer.name, why=note("several-systems", systems=tuple(systems)))
            )
            del kept[offer.records]
    return next(iter(works.values())), kept, tuple(notes)


def _of_one_system(offer: Offer, records: Mapping[str, Sequence[Record]]) -> Sequence[Record]:
    """Returns the trials of an offer. Raises InputError if they are of different systems, which cannot be combined into
    one measurement."""
    systems = _systems(offer.records, records.get(offer.records, ()))
    if len(systems) > 1:
        raise InputError(
            f"system {offer.name}",
            f"records of {len(systems)} systems have the same label: {'; '.join(systems)}",
            "select records by series or id: ironbench cost SERIES …",
        )
    return next(iter(systems.values()), ())


def _systems(label: str, records: Sequence[Record]) -> dict[str, list[Record]]:
    """Groups the records of one label by system and machine, with a unique name for each group."""
    groups: list[list[Record]] = []
    machines = machines_among(records)
    for record in records:
        for group in groups:
            if (group[0].system, machines(group[0])[0]) == (record.system, machines(record)[0]):
                group.append(record)
                break
        else:
            groups.append([record])
    if len(groups) < 2:
        return dict(zip([label], groups, strict=False))
    facts = [
        {name: value for name, value in facts_of(group[0]).items() if name.startswith("system.")}
        | {"machine": machine_of(group[0]) or UNKNOWN}
        for group in groups
    ]
    rows = differing(facts)
    named: dict[str, list[Record]] = {}
    for own, group in zip(facts, groups, strict=True):
        words = [f"{row.split('.')[-1]}={own[row]}" for row in rows if row in own][:2]
        name = f"{label} ({', '.join(words)})" if words else label
        named[f"{name} #{len(named) + 1}" if name in named else name] = group
    return named


def _price(row: SystemCost) -> Decimal:
    return row.bill.total if row.bill else Decimal(0)


def _closest(rows: Sequence[SystemCost]) -> SystemCost | None:
    """Returns the system that comes closest to the target. Systems that sustained the rate come before the others.
    Among them, the system with the lowest upper bound is closest, because the upper bound decides whether a target is
    met. Systems without a bound are skipped."""
    candidates = [
        ((not best.kept, best.bound_s), row)
        for row in rows
        if row.target and (best := row.target.best) is not None and best.bound_s is not None
    ]
    return min(candidates, key=lambda pair: pair[0])[1] if candidates else None


def _as_near(row: SystemCost, nearest: SystemCost) -> bool:
    """Returns whether a system's confidence interval overlaps the confidence interval of the closest system."""
    a, b = (one.target.best if one.target else None for one in (row, nearest))
    if a is None or b is None or a.kept != b.kept:
        return False
    if a.bound_s is None or b.bound_s is None or a.least_s is None or b.least_s is None:
        return False
    return a.least_s <= b.bound_s and b.least_s <= a.bound_s


def _one_currency(rows: Sequence[SystemCost]) -> None:
    currencies = {row.bill.currency: row.name for row in rows if row.bill is not None and row.bill.lines}
    if len(currencies) > 1:
        both = " and ".join(f"{currency} ({name})" for currency, name in currencies.items())
        raise InputError(
            "prices", f"are in {both}", "choose one with --currency; a price sheet must contain the exchange rate"
        )


def _of_one_work(records: Mapping[str, Sequence[Record]], target: Target) -> tuple[str, Mapping[str, Sequence[Record]]]:
    """Returns the name of the work and its records. Raises InputError if the records are of several kinds of work.

    If some trials are at the target rate or above, only the work of these trials counts, and records of other work are
    ignored.
    """
    everything = [record for group in records.values() for record in group]
    counting = [record for record in everything if record.status.comparable and may_count(record, target)] or everything
    works = {work(record): work_name(record.choice) for record in counting}
    if len(works) > 1:
        names = list(dict.fromkeys(works.values()))
        raise InputError(
            "cost",
            f"the records measure different work: {'; '.join(names)}"
            f"{'' if len(names) > 1 else ', with different contents'}",
            "select records of the same work by their series",
        )
    kept = {label: [record for record in group if work(record) in works] for label, group in records.items()}
    return next(iter(works.values()), ""), kept


def _contradictions(
    offer: Offer, records: Sequence[Record], machines: Mapping[str, Mapping[str, Any]]
) -> Iterator[Note]:
    """Compares the systems file with the recorded machine. Yields nothing if the server's machine is unknown."""
    if not records or not machine_of(records[0]):
        return
    record = records[0]
    machine = machines.get(machine_of(record), {})
    cores, held = usable_cores(record, machine_cores(machine)), pinned_cpus(record)
    if cores is not None and cores != offer.cores:
        yield note(OTHER_HARDWARE, of="cores", declared=offer.cores, measured=cores, pinned=bool(held))
    sockets = (machine.get("cpu") or {}).get("sockets")
    if sockets and sockets != offer.sockets and not held:
        yield note(OTHER_HARDWARE, of="sockets", declared=offer.sockets, measured=sockets)
    limit = record.system.memory_total_bytes
    memory_bytes = min((known for known in (limit, machine.get("memory_bytes")) if known), default=0)
    if memory_bytes and offer.memory_gb and abs(memory_bytes / 1e9 / offer.memory_gb - 1) > ALIKE:
        measured = round(memory_bytes / 1e9, 0 if memory_bytes >= 10e9 else 1)
        pinned = memory_bytes == limit
        yield note(OTHER_HARDWARE, of="memory_gb", declared=offer.memory_gb, measured=measured, pinned=pinned)
