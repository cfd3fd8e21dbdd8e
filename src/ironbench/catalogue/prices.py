"""Price sheets: what things cost, each price with its unit, currency, date and source."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from ironbench.catalogue.typed import converted, document, text_of
from ironbench.errors import InputError, nearest
from ironbench.ranges import RANGES

KINDS = ("server", "storage", "licence", "power", "instance")
UNITS = {
    "core": "licences for physical cores, counted by the price's rules",
    "socket": "each socket of each server",
    "server": "each server",
    "TB": "each TB of storage",
    "kWh": "each kWh that the servers draw over the years",
    "hour": "each hour of the years, for each server",
}
"""What a price may be for."""
YEARLY = ("once", "year", "month")
_DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")
_CURRENCY = re.compile(r"[A-Z]{3}")


class _PriceRow(msgspec.Struct, forbid_unknown_fields=True):
    price: float | int | None = None
    currency: str = ""
    per: str = ""
    date: str = ""
    source: str = ""
    kind: str = ""
    edition: str = ""
    every: str = "once"
    pack: int = 1
    least_cores_per_socket: int = 0
    least_cores_per_server: int = 0
    most_cores: int | None = None
    most_sockets: int | None = None
    most_memory_gb: float | None = None
    core_factors: dict[str, float] = msgspec.field(default_factory=dict)
    estimate: bool = False


class _RateRow(msgspec.Struct, forbid_unknown_fields=True):
    from_: str = msgspec.field(default="", name="from")
    to: str = ""
    rate: float | None = None
    date: str = ""
    source: str = ""


class _SheetFile(msgspec.Struct, forbid_unknown_fields=True):
    price: dict[str, Any] = msgspec.field(default_factory=dict)
    rate: dict[str, Any] = msgspec.field(default_factory=dict)


_HINT = "docs/guide/cost.md tells what may stand in a price sheet"


@dataclass(frozen=True, slots=True)
class Price:
    """One thing that can be bought."""

    name: str
    kind: str
    """One of `KINDS`."""
    price: Decimal
    """For one unit, in `currency`."""
    currency: str
    """Three letters, ISO 4217."""
    per: str
    """One of `UNITS`."""
    date: str
    source: str
    edition: str = ""
    every: str = "once"
    """`once`, or what is paid again each `year` or `month`."""
    pack: int = 1
    """Sold in packs of so many units."""
    least_cores_per_socket: int = 0
    least_cores_per_server: int = 0
    most_cores: int | None = None
    """What the edition uses of one server, at most; None: no limit."""
    most_sockets: int | None = None
    most_memory_gb: float | None = None
    core_factors: Mapping[str, Decimal] = field(default_factory=dict)
    """Pattern of the processor's name → licences per core; the first that fits counts."""
    estimate: bool = False


@dataclass(frozen=True, slots=True)
class ExchangeRate:
    """What one unit of a currency was worth in another on a day."""

    currency: str
    into: str
    rate: Decimal
    date: str
    source: str


@dataclass(frozen=True, slots=True)
class Sheet:
    """Prices by name, and the rates between their currencies."""

    prices: Mapping[str, Price]
    rates: tuple[ExchangeRate, ...] = ()

    def price(self, name: str) -> Price:
        """InputError names the nearest."""
        if name not in self.prices:
            raise InputError(f"price {name}", "is in no price sheet", nearest(name, list(self.prices)))
        return self.prices[name]

    def licence(self, name: str) -> Price:
        """InputError names licences, those most like it first."""
        known = [price.name for price in self.prices.values() if price.kind == "licence"]
        if name not in known:
            other = self.prices.get(name)
            cause = f"is a price of kind {other.kind}, not of a licence" if other else "is no licence in a price sheet"
            raise InputError(f"--licence {name}", cause, nearest(name, known, closest_first=True))
        return self.prices[name]

    def rate(self, currency: str, into: str) -> ExchangeRate:
        """As stated, in either direction. InputError where none is: currencies are never mixed without one."""
        for one in self.rates:
            if (one.currency, one.into) == (currency, into):
                return one
            if (one.into, one.currency) == (currency, into):
                return ExchangeRate(currency, into, 1 / one.rate, one.date, one.source)
        raise InputError(
            f"{currency} and {into}",
            "prices are in both, and no rate between them is stated",
            f'state it in a price sheet: [rate.NAME] from = "{currency}", to = "{into}", rate, date, source',
        )


def shipped() -> Sheet:
    """The sheet that comes with ironbench."""
    return read(files("ironbench.catalogue").joinpath("prices.toml").read_text(encoding="utf-8"), "prices.toml")


def with_sheets(paths: Sequence[Path]) -> Sheet:
    """The shipped sheet with the user's on top: of prices of one name the last counts. InputError."""
    sheet = shipped()
    for path in paths:
        own = read(text_of(path, f"--prices {path}", "name a price sheet (TOML)"), str(path))
        sheet = Sheet({**sheet.prices, **own.prices}, (*own.rates, *sheet.rates))
    return sheet


def read(text: str, name: str) -> Sheet:
    """A price sheet, every line of it validated. InputError names sheet, line and what is missing."""
    found = converted(document(text, name, _HINT), _SheetFile, name, _HINT)
    return Sheet(
        {key: _price(name, key, row) for key, row in found.price.items()},
        tuple(_rate(name, key, row) for key, row in found.rate.items()),
    )


def _price(sheet: str, name: str, table: Any) -> Price:
    subject = f"{sheet}: price {name}"
    row = converted(table, _PriceRow, subject, _HINT)
    price = _amount(subject, "price", row.price)
    _one_of(subject, "per", row.per, list(UNITS), "a unit")
    _currency(subject, "currency", row.currency)
    _dated(subject, row.date, row.source)
    _one_of(subject, "kind", row.kind, list(KINDS), "a kind")
    _one_of(subject, "every", row.every, list(YEARLY), "a time")
    for limit in ("pack", "least_cores_per_socket", "least_cores_per_server", "most_cores", "most_sockets"):
        count = getattr(row, limit)
        if count is not None and (count or not limit.startswith("least")):
            RANGES["pack" if limit == "pack" else "cores"].require(f"{subject}, {limit}", count)
    if row.most_memory_gb is not None:
        RANGES["memory_gb"].require(f"{subject}, most_memory_gb", row.most_memory_gb)
    if row.per in ("kWh", "hour") and (row.every != "once" or row.pack > 1):
        odd = f"every = {row.every!r}" if row.every != "once" else f"pack = {row.pack}"
        raise InputError(
            subject, f"is per {row.per} and says {odd}", f"each {row.per} of the years is counted already: leave it out"
        )
    if (row.least_cores_per_socket or row.least_cores_per_server) and row.per != "core":
        raise InputError(subject, f"has a least number of cores but is per {row.per}", "such minimums count cores")
    if row.core_factors and row.per != "core":
        raise InputError(subject, f"has core factors but is per {row.per}", "core factors count cores")
    factors = {
        pattern: _amount(subject, f"core factor of {pattern}", value) for pattern, value in row.core_factors.items()
    }
    return Price(
        name, row.kind, price, row.currency, row.per, row.date, row.source, row.edition, row.every, row.pack,
        row.least_cores_per_socket, row.least_cores_per_server, row.most_cores, row.most_sockets, row.most_memory_gb,
        factors, row.estimate,
    )  # fmt: skip


def _rate(sheet: str, name: str, table: Any) -> ExchangeRate:
    subject = f"{sheet}: rate {name}"
    row = converted(table, _RateRow, subject, _HINT)
    _currency(subject, "from", row.from_)
    _currency(subject, "to", row.to)
    rate = _amount(subject, "rate", row.rate)
    _dated(subject, row.date, row.source)
    return ExchangeRate(row.from_, row.to, rate, row.date, row.source)


def _amount(subject: str, field: str, value: Any) -> Decimal:
    if value is None:
        raise InputError(subject, f"has no {field}", f"add {field} = a number")
    RANGES["exchange_rate" if field == "rate" else "price"].require(f"{subject}, {field}", value)
    return Decimal(str(value))


def _currency(subject: str, field: str, text: str) -> None:
    if not text:
        raise InputError(subject, f"has no {field}", 'currencies are three letters, e.g. "USD"')
    if not _CURRENCY.fullmatch(text):
        raise InputError(subject, f"{field} = {text!r} is no currency", 'currencies are three letters, e.g. "USD"')


def _dated(subject: str, date: str, source: str) -> None:
    if not date:
        raise InputError(subject, "has no date", 'prices change: add date = "2026-11-21"')
    if not _DATE.fullmatch(date):
        raise InputError(subject, f"date = {date!r} is no date", 'write it as "2026-11-21", "2026-11" or "2026"')
    if not source:
        raise InputError(subject, "has no source", "say where the number comes from")


def _one_of(subject: str, field: str, text: str, known: list[str], what: str) -> None:
    if not text:
        raise InputError(subject, f"has no {field}", f"{what} is one of {', '.join(known)}")
    if text not in known:
        raise InputError(subject, f"{field} = {text!r} is unknown", nearest(text, known))
