"""Computes the cost breakdown of an offer from a price sheet. The rules of each price determine the number of units.
The amounts are in one currency.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase

from ironbench.catalogue.prices import Price, Sheet
from ironbench.errors import InputError
from ironbench.model.cost import CostBreakdown, CostItem, Offer
from ironbench.model.note import Note, note

HOURS_PER_YEAR = Decimal("8766")
"""Hours in a year of 365.25 days."""
_CENT = Decimal("0.01")
_RUNNING = ("kWh", "hour")
"""Units that are consumed over time."""


def bill(offer: Offer, sheet: Sheet, years: Decimal | None, currency: str = "") -> CostBreakdown:
    """Returns the cost breakdown of an offer.

    Without `currency`, the breakdown uses the prices' common currency. Raises InputError if no sheet contains a price,
    if an exchange rate is missing, or if a price needs a period in years but `years` is None.
    """
    prices = [sheet.price(name) for name in offer.buy]
    into = currency or _common(offer, prices)
    lines = tuple(_line(offer, price, sheet, years, into) for price in prices)
    runs = any(price.every != "once" or price.per in _RUNNING for price in prices)
    limits = tuple(one for price in prices for one in _limits(offer, price))
    return CostBreakdown(offer, into, lines, limits, years if runs else None)


def licences(price: Price, servers: int, sockets: int, cores: int, processor: str) -> tuple[int, Note]:
    """Returns the number of core licences to buy and a note on how they were counted.

    Each server needs its number of cores times the processor's core factor, rounded up. The price may also require a
    minimum number per socket and per server. The total for all servers is rounded up to whole packs. Raises InputError
    if no factor matches the processor.
    """
    factor = _factor(price, processor)
    own = math.ceil(cores * factor)
    least = max(price.least_cores_per_socket * sockets, price.least_cores_per_server)
    needed = servers * max(own, least)
    bought = math.ceil(needed / price.pack) * price.pack
    return bought, note(
        "licences-for-cores",
        servers=servers,
        cores=cores,
        factor=float(factor),
        least=least if least > own else 0,
        packs=bought // price.pack if price.pack > 1 else 0,
        pack=price.pack,
    )


def _factor(price: Price, processor: str) -> Decimal:
    if not price.core_factors:
        return Decimal(1)
    for pattern, factor in price.core_factors.items():
        if fnmatchcase(processor, pattern):
            return Decimal(str(factor))
    raise InputError(
        f"price {price.name}",
        f"has no core factor for the processor {processor or '(not named)'}",
        'add `processor` to the system, or a core factor for "*" to the price',
    )


def _line(offer: Offer, price: Price, sheet: Sheet, years: Decimal | None, into: str) -> CostItem:
    units, notes = _units(offer, price, years)
    times = _times(price, years)
    each = Decimal(str(price.price))
    amount = each * units * times
    if price.currency != into:
        rate = sheet.rate(price.currency, into)
        amount *= Decimal(str(rate.rate))
        rated = {"rate": rate.rate, "into": into, "date": str(rate.date), "source": rate.source}
        notes = (*notes, note("exchange-rate", currency=price.currency, **rated))
    try:
        cents = amount.quantize(_CENT)
    except InvalidOperation:
        cause = f"comes to {amount:.3g} {into} for system {offer.name}"
        raise InputError(f"price {price.name}", cause, "check for a number that is too large") from None
    return CostItem(
        name=price.name,
        units=units,
        unit=price.per,
        price=each,
        currency=price.currency,
        times=times,
        amount=cents,
        notes=notes,
        estimate=price.estimate,
        every=price.every,
    )


def _units(offer: Offer, price: Price, years: Decimal | None) -> tuple[Decimal, tuple[Note, ...]]:
    if price.per == "core":
        count, how = licences(price, offer.servers, offer.sockets, offer.cores, offer.processor)
        return Decimal(count), (how,)
    if price.per == "kWh":
        _stated(offer, price, "watts", offer.watts)
        drawn = Decimal(str(offer.watts)) * offer.servers * HOURS_PER_YEAR * _needed(price, years) / 1000
        return drawn, (note("power-drawn", servers=offer.servers, watts=offer.watts),)
    if price.per == "hour":
        return HOURS_PER_YEAR * _needed(price, years) * offer.servers, (note("every-hour"),)
    if price.per == "TB":
        _stated(offer, price, "storage_tb", offer.storage_tb)
    counted = {
        "socket": Decimal(offer.servers * offer.sockets),
        "server": Decimal(offer.servers),
        "TB": Decimal(str(offer.storage_tb)),
    }[price.per]
    bought = Decimal(math.ceil(counted / price.pack) * price.pack) if price.pack > 1 else counted
    return bought, (note("in-packs", pack=price.pack),) if price.pack > 1 else ()


def _stated(offer: Offer, price: Price, field: str, value: float) -> None:
    """Raises InputError if the value is missing, because the price would otherwise count as zero."""
    if not value > 0:
        raise InputError(
            f"system {offer.name}",
            f"has no {field}, and the price {price.name} is per {price.per}",
            f"add {field} to the systems file, or remove the price",
        )


def _times(price: Price, years: Decimal | None) -> Decimal:
    if price.every == "once":
        return Decimal(1)
    return _needed(price, years) * (12 if price.every == "month" else 1)


def _needed(price: Price, years: Decimal | None) -> Decimal:
    if years is None:
        unit = f"per {price.per}" if price.every == "once" else f"every {price.every}"
        raise InputError(f"price {price.name}", f"is {unit}, but no period is set", "add years = 3 to the systems file")
    return years


def _common(offer: Offer, prices: Sequence[Price]) -> str:
    currencies = list(dict.fromkeys(price.currency for price in prices))
    if len(currencies) > 1:
        raise InputError(
            f"system {offer.name}",
            f"has prices in {' and '.join(currencies)}",
            "choose one with --currency; a price sheet must contain the exchange rate",
        )
    return currencies[0] if currencies else ""


def _limits(offer: Offer, price: Price) -> list[Note]:
    """Returns a note for each limit of the edition that the server exceeds. With this edition, the server may not reach
    the measured score."""
    limits = (
        (price.most_sockets, offer.sockets, "sockets"),
        (price.most_cores, offer.cores, "cores"),
        (price.most_memory_gb, offer.memory_gb, "memory_gb"),
    )
    return [
        note("edition-limit", price=price.name, edition=price.edition, most=most, there=there, of=what)
        for most, there, what in limits
        if most is not None and there is not None and there > most
    ]
