"""The price of a system: the offer and its bill."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from ironbench.model.note import Note


@dataclass(frozen=True, slots=True)
class CostRange:
    """A number, the bounds of an estimate, or a measured value with its confidence interval."""

    low: float
    high: float
    """Infinite where a value was measured once, so that nothing bounds it."""
    centre: float | None = None
    """The measured value."""

    @property
    def bounded(self) -> bool:
        """Whether its bounds are known."""
        return self.high < math.inf

    def times(self, factor: float) -> CostRange:
        return CostRange(self.low * factor, self.high * factor, None if self.centre is None else self.centre * factor)

    def over(self, other: CostRange) -> CostRange:
        """Bounds of the ratio to another: those of their extremes."""
        low = self.low / other.high
        return CostRange(low, self.high / other.low if other.low and self.bounded else math.inf)


@dataclass(frozen=True, slots=True)
class Offer:
    """A system as it can be bought."""

    name: str
    records: str
    """Label of the records that measured it."""
    servers: int
    sockets: int
    """Per server, as cores, memory and power are."""
    cores: int
    """Physical."""
    processor: str = ""
    memory_gb: float | None = None
    storage_tb: float = 0.0
    """Of all servers together."""
    watts: float = 0.0
    buy: tuple[str, ...] = ()
    """Names of prices."""
    score: float | None = None
    """Of one server, where no records measured it."""
    share_of: str = ""
    """An offer whose score this one's is estimated from,"""
    share: CostRange | None = None
    """as a share of it for each server."""
    core_speed: CostRange | None = None
    """Estimated speed of one core relative to one of `share_of`."""
    source: str = ""
    """Of score, shares and speed."""

    @property
    def all_cores(self) -> int:
        return self.servers * self.cores


@dataclass(frozen=True, slots=True)
class BillLine:
    """One line of a bill."""

    name: str
    units: Decimal
    """Paid for: packs and minimums counted."""
    unit: str
    price: Decimal
    """Of one unit, in the price's own currency."""
    currency: str
    times: Decimal
    """How often it is paid: 1, or months or years."""
    amount: Decimal
    """In the bill's currency."""
    notes: tuple[Note, ...] = ()
    """How the units were counted, and the rate of exchange."""
    estimate: bool = False
    every: str = "once"
    """How often it is paid: `once`, or each `month` or `year`."""


@dataclass(frozen=True, slots=True)
class Bill:
    """What an offer costs, all in one currency."""

    offer: Offer
    currency: str
    lines: tuple[BillLine, ...]
    cautions: tuple[Note, ...] = ()
    """Why the edition bought may not give what was measured."""
    years: Decimal | None = None
    """Period that running costs are counted over; None: everything is paid once."""

    @property
    def total(self) -> Decimal:
        return sum((line.amount for line in self.lines), Decimal(0))

    @property
    def estimate(self) -> bool:
        return any(line.estimate for line in self.lines)
