"""What each system costs, what it does, and which is the cheapest that meets a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ironbench.analyse.bill import bill
from ironbench.analyse.subjects import work_name
from ironbench.analyse.target import Attained, Target, attained
from ironbench.catalogue.prices import Sheet
from ironbench.errors import InputError
from ironbench.model.cost import Bill, Offer, Range
from ironbench.model.record import Record
from ironbench.plan.offers import Offers


@dataclass(frozen=True, slots=True)
class Row:
    """One system."""

    name: str
    bill: Bill | None
    """None: nothing was said of what it costs."""
    cores: int | None
    score: Range | None
    """Transactions per second at the target, or what the systems file says."""
    estimate: bool
    """Whether the score is one."""
    source: str
    """Of the score."""
    target: Attained | None = None

    @property
    def per_core(self) -> Range | None:
        return self.score.times(1 / self.cores) if self.score and self.cores else None

    @property
    def per_thousand(self) -> Range | None:
        """Score per 1000 units of the bill's currency."""
        if self.score is None or self.bill is None or not self.bill.total:
            return None
        return self.score.times(1000 / float(self.bill.total))


@dataclass(frozen=True, slots=True)
class Costs:
    """Everything `cost` says."""

    question: str
    target: Target | None
    unit: str
    rows: tuple[Row, ...]
    work: str
    """What the records did; empty without any."""
    cheapest: Row | None
    """Of those that meet the target; without a target none is."""
    nearest: Row | None
    """Where none meets the target: the one that came closest."""


def costs(
    offers: Offers | None,
    sheet: Sheet,
    records: Mapping[str, Sequence[Record]],
    cores: Mapping[str, int],
    target: Target | None,
    currency: str = "",
) -> Costs:
    """`records`: by label. `cores`: of the machine that each label's records were made on, where that is known.

    InputError: prices, currencies, or records of different work under one target.
    """
    work = _one_work([record for group in records.values() for record in group])
    into = currency or (offers.currency if offers else "")
    named = offers.offers if offers else ()
    by_name = {offer.name: offer for offer in named}
    rows = [_offered(offer, by_name, offers, sheet, records.get(offer.records, ()), target, into) for offer in named]
    told = {offer.records for offer in named}
    rows += [_unpriced(label, group, cores.get(label), target) for label, group in records.items() if label not in told]
    _one_currency(rows)
    met = [row for row in rows if row.target and row.target.meets]
    priced = [row for row in met if row.bill is not None]
    cheapest = min(priced, key=lambda row: row.bill.total if row.bill else 0, default=None)
    closest = None if met or target is None else _closest(rows)
    unit = "tps" if target else (offers.unit if offers else "")
    return Costs(offers.question if offers else "", target, unit, tuple(rows), work, cheapest, closest)


def _offered(
    offer: Offer,
    known: Mapping[str, Offer],
    offers: Offers | None,
    sheet: Sheet,
    records: Sequence[Record],
    target: Target | None,
    currency: str,
) -> Row:
    own = bill(offer, sheet, offers.years if offers else None, currency) if offer.buy else None
    if target is not None:
        found = attained(offer.name, records, target)
        return Row(offer.name, own, offer.all_cores, _shown(found), False, "records", found)
    if offer.score is not None:
        whole = offer.score * offer.servers
        return Row(offer.name, own, offer.all_cores, Range(whole, whole), offer.servers > 1, offer.source)
    if offer.share is not None:
        whole = (known[offer.share_of].score or 0.0) * offer.servers
        return Row(offer.name, own, offer.all_cores, offer.share.times(whole), True, offer.source)
    return Row(offer.name, own, offer.all_cores, None, False, "")


def _unpriced(label: str, records: Sequence[Record], cores: int | None, target: Target | None) -> Row:
    found = attained(label, records, target) if target else None
    return Row(label, None, cores, _shown(found) if found else None, False, "records", found)


def _shown(found: Attained) -> Range | None:
    """What the system was shown to do while it met the target; a system that did not meet it has no score."""
    if not found.meets or found.best is None:
        return None
    return Range(found.best.throughput, found.best.throughput)


def _closest(rows: Sequence[Row]) -> Row | None:
    measured = [(row.target.best, row) for row in rows if row.target and row.target.best is not None]
    return min(
        measured, key=lambda pair: (not pair[0].kept, pair[0].bound_s or pair[0].centre_s), default=(None, None)
    )[1]


def _one_currency(rows: Sequence[Row]) -> None:
    found = {row.bill.currency: row.name for row in rows if row.bill is not None and row.bill.lines}
    if len(found) > 1:
        both = " and ".join(f"{currency} ({name})" for currency, name in found.items())
        raise InputError(
            "bills", f"are in {both}", "choose one with --currency; a rate must be stated in a price sheet"
        )


def _one_work(records: Sequence[Record]) -> str:
    works = list(dict.fromkeys(work_name(record.choice) for record in records))
    if len(works) > 1:
        raise InputError(
            "cost",
            f"the records did different work: {'; '.join(works)}",
            "name records of one work, by label or series",
        )
    return works[0] if works else ""
