"""Published results ranked, and our own beside them in a ranking of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ironbench.analyse.archive import Archive
from ironbench.analyse.bill import bill
from ironbench.analyse.curve import curve
from ironbench.analyse.subjects import by_work, subjects, work_name
from ironbench.catalogue.prices import Sheet
from ironbench.catalogue.published import Entry, Published
from ironbench.errors import InputError, nearest
from ironbench.model.cost import Offer
from ironbench.model.record import Record

PER = ("core", "socket", "currency")
SORTS = ("score", *PER, "system", "cores")
NOT_COMPARABLE = (
    "Results of ironbench are derived from these benchmarks, not audited, and not comparable with published TPC "
    "results: they are ranked by themselves."
)


@dataclass(frozen=True, slots=True)
class Place:
    """One result in its ranking."""

    rank: int
    system: str
    processor: str
    sockets: int | None
    cores: int | None
    score: float
    per_core: float | None
    per_socket: float | None
    per_currency: float | None
    """Score per 1000 units of what the licences cost; None where no licence is chosen."""
    other: Mapping[str, str]
    """What else is told of it."""

    def by(self, sort: str) -> tuple[float, str]:
        """The key that puts the best first; names are in alphabetical order, as equals are."""
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
    """One table: published results, or ours, never both."""

    title: str
    score: str
    sort: str
    source: str
    places: tuple[Place, ...]
    currency: str = ""
    derived: str = ""
    """A sentence that must stand with our own results."""


def published(board: Published, sort: str, sheet: Sheet, licence: str) -> Ranking:
    """InputError: an unknown price, or a processor that it has no core factor for."""
    places = [_published(entry, sheet, licence) for entry in board.entries]
    currency = sheet.price(licence).currency if licence else ""
    return Ranking(board.title, board.score, sort, board.source, _ranked(places, sort), currency)


def own(
    records: Sequence[Record], archive: Archive, sort: str, sheet: Sheet, licence: str, derived: str
) -> list[Ranking]:
    """A ranking for each work: the peak of every system that did it."""
    found = []
    currency = sheet.price(licence).currency if licence else ""
    for group in by_work(records):
        places = [
            _own(subject.name, peak.trials[0], peak.throughput.centre, archive, sheet, licence)
            for subject in subjects(group)
            if (peak := curve(subject).peak) is not None
        ]
        if places:
            title = f"own results: {work_name(group[0].choice)}"
            found.append(Ranking(title, "throughput", sort, "records", _ranked(places, sort), currency, derived))
    return found


def checked_sort(sort: str) -> str:
    """InputError names the nearest."""
    if sort not in SORTS:
        raise InputError(f"--sort {sort}", "is no column to sort by", nearest(sort, list(SORTS)))
    return sort


def _published(entry: Entry, sheet: Sheet, licence: str) -> Place:
    cost = _licences(entry.system, entry.processor, entry.sockets, entry.cores, sheet, licence)
    return Place(
        0, entry.system, entry.processor, entry.sockets, entry.cores, entry.score, entry.per_core,
        entry.score / entry.sockets, entry.score * 1000 / cost if cost else None, entry.other,
    )  # fmt: skip


def _own(name: str, record: Record, score: float, archive: Archive, sheet: Sheet, licence: str) -> Place:
    """Cores are the machine's, or the logical CPUs that the system was held to."""
    cpu = archive.machine(record.machine).get("cpu", {})
    held = record.system.server_cpus
    cores, sockets = cpu.get("cores"), cpu.get("sockets")
    other = {}
    if held is not None:
        cores, sockets = min(cores or len(held), len(held)), None
        other["held to"] = f"CPU {','.join(map(str, held))}"
    model = str(cpu.get("model", ""))
    cost = _licences(name, model, sockets or 1, cores, sheet, licence) if cores else 0.0
    return Place(
        0, name, model, sockets, cores, score, score / cores if cores else None, score / sockets if sockets else None,
        score * 1000 / cost if cost else None, other,
    )  # fmt: skip


def _licences(system: str, processor: str, sockets: int, cores: int, sheet: Sheet, licence: str) -> float:
    if not licence:
        return 0.0
    offer = Offer(system, "", 1, sockets, cores, processor, buy=(licence,))
    return float(bill(offer, sheet, None).total)


def _ranked(places: Sequence[Place], sort: str) -> tuple[Place, ...]:
    ordered = sorted(places, key=lambda place: place.by(sort))
    return tuple(replace(place, rank=number) for number, place in enumerate(ordered, start=1))
