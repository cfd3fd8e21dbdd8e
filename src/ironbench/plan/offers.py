"""Reads the systems file of `ironbench cost`. The file lists candidates, each with the label of its records or an
estimated score.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

import msgspec

from ironbench.catalogue.prices import CORES, MEMORY_GB, SOCKETS, currency
from ironbench.catalogue.typed import document
from ironbench.errors import InputError, nearest
from ironbench.fields.check import converted
from ironbench.fields.row import row
from ironbench.model import cost
from ironbench.model.cost import Offer
from ironbench.ranges import Range

_SHARES = Range(0.0, 1e6, above=True, example="0.6")
_HINT = "see docs/how/cost.md for the format of a systems file"


class _OfferRow(msgspec.Struct, forbid_unknown_fields=True):
    sockets: Annotated[int, row("CPU sockets per server", SOCKETS)]
    cores: Annotated[int, row("physical cores per server", CORES)]
    buy: list[str]
    servers: Annotated[int, row("number of servers", Range(1, 10**6, whole=True, example="1"))] = 1
    processor: str = ""
    memory_gb: Annotated[float, row("memory per server in GB", MEMORY_GB)] | None = None
    storage_tb: Annotated[float, row("storage in TB", Range(0.0, 1e9, example="2"))] = 0.0
    watts: Annotated[float, row("power consumption of all servers in watts", Range(0.0, 1e9, example="300"))] = 0.0
    records: str = ""
    score: Annotated[float, row("benchmark score", Range(0.0, 1e15, above=True, example="5000"))] | None = None
    share_of: str = ""
    share: (
        Annotated[float | list[float], row("fraction of another system's score, or a range [low, high]", _SHARES)]
        | None
    ) = None
    core_speed: Annotated[float | list[float], row("speed of a core, or a range [low, high]", _SHARES)] | None = None
    source: str = ""


class _OffersFile(msgspec.Struct, forbid_unknown_fields=True):
    system: dict[str, Any]
    question: str = ""
    years: (
        Annotated[float, row("years of running costs to include", Range(0.0, 100.0, above=True, example="3"))] | None
    ) = None
    currency: str = ""
    unit: str = ""


@dataclass(frozen=True, slots=True)
class SystemsFile:
    """The contents of a systems file."""

    question: str
    years: Decimal | None
    """Period in years over which running costs are added up, or None if there are only one-time costs."""
    currency: str
    """Currency of the cost breakdowns. If empty, they use the currency of the prices."""
    unit: str
    """Name of the scores' unit."""
    offers: tuple[Offer, ...]
    """Candidates. The other candidates are compared with the first one."""


def read(text: str, name: str) -> SystemsFile:
    """Reads a systems file. Raises InputError that names the file, the system and the field."""
    file = converted(document(text, name, _HINT), _OffersFile, name, _HINT)
    if not file.system:
        raise InputError(name, "has no systems", "add [system.NAME] with `sockets`, `cores` and `buy`")
    offers = tuple(_offer(name, key, row) for key, row in file.system.items())
    _known_shares(name, offers)
    years = None if file.years is None else Decimal(str(file.years))
    return SystemsFile(file.question, years, currency(f"{name}, currency", file.currency), file.unit, offers)


def _offer(file: str, name: str, table: Any) -> Offer:
    subject = f"{file}: system {name}"
    row = converted(table, _OfferRow, subject, _HINT)
    if row.cores < row.sockets:
        raise InputError(
            subject,
            f"has fewer cores ({row.cores}) than sockets ({row.sockets})",
            "`cores` is the total number of cores per server",
        )
    if row.score is not None and row.share is not None:
        raise InputError(subject, "has both `score` and `share`", "remove one of the two")
    if (row.share is None) != (not row.share_of):
        raise InputError(
            subject, "`share` and `share_of` must be used together", 'e.g. share_of = "big", share = [0.60, 0.65]'
        )
    if (row.score is not None or row.share is not None) and not row.source:
        raise InputError(
            subject, "has `score` or `share` but no `source`", 'add source = "…", the origin of the number'
        )
    return Offer(
        name=name,
        records=row.records or name,
        servers=row.servers,
        sockets=row.sockets,
        cores=row.cores,
        processor=row.processor,
        memory_gb=row.memory_gb,
        storage_tb=row.storage_tb,
        watts=row.watts,
        buy=tuple(row.buy),
        score=row.score,
        share_of=row.share_of,
        share=_range(subject, "share", row.share),
        core_speed=_range(subject, "core_speed", row.core_speed),
        source=row.source,
    )


def _range(subject: str, field: str, value: float | list[float] | None) -> cost.CostRange | None:
    if value is None:
        return None
    bounds = value if isinstance(value, list) else [value, value]
    if len(bounds) != 2 or not 0 < bounds[0] <= bounds[1]:
        raise InputError(subject, f"{field} = {value} is not a range", f"write for example {field} = [0.60, 0.65]")
    return cost.CostRange(bounds[0], bounds[1])


def _known_shares(file: str, offers: tuple[Offer, ...]) -> None:
    scored = {offer.name: offer.score is not None for offer in offers}
    for offer in offers:
        if offer.share_of and not scored.get(offer.share_of):
            named = [name for name, has in scored.items() if has]
            hint = nearest(offer.share_of, named) if named else "add `score` to one system"
            raise InputError(
                f"{file}: system {offer.name}",
                f"`share_of` is {offer.share_of!r}, but no system with a score has this name",
                hint,
            )
