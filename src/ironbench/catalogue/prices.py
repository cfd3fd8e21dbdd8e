"""Price sheets: prices with unit, currency, date and source."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ironbench.catalogue.typed import document, text_of
from ironbench.errors import InputError, nearest, quoted
from ironbench.fields.check import converted
from ironbench.fields.row import row
from ironbench.ranges import Range

Kind = Literal["server", "storage", "licence", "power", "instance"]
Unit = Literal["core", "socket", "server", "TB", "kWh", "hour"]
"""Unit of a price.

`core` is a physical core, counted by the price's rules. `socket` is a processor socket. `TB` is storage. `kWh` is
energy that the servers consume. `hour` is an hour of running each server.
"""
_CODE = re.compile("[A-Z]{3}")
Currency = Annotated[str, Meta(pattern=rf"^{_CODE.pattern}$", description="three letters, e.g. USD")]
"""An ISO 4217 code."""
Day = Annotated[
    str, Meta(pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$", description='a date: "2026-11-21", "2026-11" or "2026"')
]
Source = Annotated[str, Meta(min_length=1, description="the origin of the number")]
_AMOUNTS = Range(0.0, 1e15, example="199.5")
CORES = Range(1, 10**6, whole=True, example="8")
SOCKETS = Range(1, 10**6, whole=True, example="2")
MEMORY_GB = Range(0.0, 1e9, above=True, example="64")
_HINT = "see docs/how/cost.md for the format of a price sheet"


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An item that can be bought."""

    name: str = ""
    """Name of the item's table in the sheet."""
    kind: Kind
    price: Annotated[float, row("price of one unit", _AMOUNTS)]
    currency: Currency
    per: Unit
    date: Day
    source: Source
    edition: str = ""
    every: Literal["once", "year", "month"] = "once"
    """Billing period."""
    pack: Annotated[int, row("number of units per pack", Range(1, 10**6, whole=True, example="2"))] = 1
    least_cores_per_socket: Annotated[
        int, row("minimum number of licensed cores per socket", Range(0, 10**6, whole=True, example="4"))
    ] = 0
    least_cores_per_server: Annotated[
        int, row("minimum number of licensed cores per server", Range(0, 10**6, whole=True, example="4"))
    ] = 0
    most_cores: (
        Annotated[int, row("maximum number of cores per server that the edition uses; default: no limit", CORES)] | None
    ) = None
    most_sockets: Annotated[int, row("maximum number of sockets per server that the edition uses", SOCKETS)] | None = (
        None
    )
    most_memory_gb: (
        Annotated[float, row("maximum memory per server that the edition uses, in GB", MEMORY_GB)] | None
    ) = None
    core_factors: dict[
        str,
        Annotated[float, row("pattern of the CPU name → licences per core; the first match applies", _AMOUNTS)],
    ] = {}
    estimate: bool = False


class ExchangeRate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An exchange rate on a date: the value of one unit of `currency` in the currency `into`."""

    currency: Currency = msgspec.field(name="from")
    into: Currency = msgspec.field(name="to")
    rate: Annotated[
        float,
        row("value of one unit of `from` in `to`", Range(0.0, 1e12, above=True, example="1.08")),
    ]
    date: Day
    source: Source


class _SheetFile(msgspec.Struct, forbid_unknown_fields=True):
    price: dict[str, Any] = {}
    rate: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Sheet:
    """Prices, and exchange rates between their currencies."""

    prices: Mapping[str, Price]
    rates: tuple[ExchangeRate, ...] = ()

    def price(self, name: str) -> Price:
        """Returns the price with this name. Raises InputError that suggests the nearest name."""
        if name not in self.prices:
            raise InputError(f"price {name}", "no price sheet contains this price", nearest(name, list(self.prices)))
        return self.prices[name]

    def licence(self, name: str) -> Price:
        """Returns the licence price with this name, for a leaderboard.

        Raises InputError if there is no such licence. The error lists the licences, with the most similar name first.
        Also raises InputError if the price depends on a quantity that published results do not contain, such as years
        or storage.
        """
        known = [price.name for price in self.prices.values() if price.kind == "licence"]
        if name not in known:
            other = self.prices.get(name)
            cause = (
                f"is a price of kind {other.kind}, not a licence" if other else "no price sheet contains this licence"
            )
            raise InputError(f"--licence {name}", cause, nearest(name, known, closest_first=True))
        price = self.prices[name]
        if price.every != "once" or price.per not in ("core", "socket", "server"):
            cause = f"is charged per {price.per}, but published results do not contain the number of such units"
            if price.every != "once":
                cause = f"is paid every {price.every}, but published results do not contain a period"
            hint = "use a one-time licence per core, socket or server; for other prices, use `ironbench cost`"
            raise InputError(f"--licence {name}", cause, hint)
        return price

    def rate(self, currency: str, into: str) -> ExchangeRate:
        """Returns the exchange rate between two currencies, computed from the opposite rate if necessary. Raises
        InputError if there is neither."""
        for one in self.rates:
            if (one.currency, one.into) == (currency, into):
                return one
            if (one.into, one.currency) == (currency, into):
                return ExchangeRate(currency, into, 1 / one.rate, one.date, one.source)
        raise InputError(
            f"{currency} and {into}",
            "prices use both currencies, but no price sheet has an exchange rate for them",
            f'add it to a price sheet: [rate.NAME] from = "{currency}", to = "{into}", rate, date, source',
        )


def currency(subject: str, text: str) -> str:
    """Checks and returns a currency code. The code is "" if the user chose none. Raises InputError."""
    if text and not _CODE.fullmatch(text):
        hint = "use its three-letter code" + (f": {text.upper()}" if _CODE.fullmatch(text.upper()) else ", e.g. EUR")
        raise InputError(subject, f"{quoted(text)} is not a currency code", hint)
    return text


def shipped() -> Sheet:
    """Returns the built-in price sheet."""
    return read(files("ironbench.catalogue").joinpath("prices.toml").read_text(encoding="utf-8"), "prices.toml")


def with_sheets(paths: Sequence[Path]) -> Sheet:
    """Merges the user's sheets into the built-in one. If a name occurs several times, the last price is used. Raises
    InputError."""
    sheet = shipped()
    for path in paths:
        own = read(text_of(path, f"--prices {path}", "give the path of a price sheet (TOML)"), str(path))
        sheet = Sheet({**sheet.prices, **own.prices}, (*own.rates, *sheet.rates))
    return sheet


def read(text: str, name: str) -> Sheet:
    """Parses a price sheet and validates every entry. Raises InputError that names the sheet, the entry and the
    mistake."""
    sheet = converted(document(text, name, _HINT), _SheetFile, name, _HINT)
    return Sheet(
        {key: _price(name, key, row) for key, row in sheet.price.items()},
        tuple(converted(row, ExchangeRate, f"{name}: rate {key}", _HINT) for key, row in sheet.rate.items()),
    )


def _price(sheet: str, name: str, table: Any) -> Price:
    subject = f"{sheet}: price {name}"
    price = msgspec.structs.replace(converted(table, Price, subject, _HINT), name=name)
    if price.per in ("kWh", "hour") and (price.every != "once" or price.pack > 1):
        odd = f"every = {price.every!r}" if price.every != "once" else f"pack = {price.pack}"
        counted = f"remove it: ironbench already counts every {price.per} of the period"
        raise InputError(subject, f"is charged per {price.per}, but has `{odd}`", counted)
    if price.per != "core":
        if price.least_cores_per_socket or price.least_cores_per_server:
            cause = f"has a minimum number of cores, but the price is per {price.per}"
            raise InputError(subject, cause, 'remove it, or use per = "core"')
        if price.core_factors:
            raise InputError(
                subject,
                f"has factors per type of core (`core_factors`), but the price is per {price.per}",
                'remove them, or use per = "core"',
            )
    return price
