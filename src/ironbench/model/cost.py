"""The price of a system: the candidate and its cost breakdown."""

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
    """Infinite for a value that was measured once, which has no upper bound."""
    centre: float | None = None
    """The measured value."""

    @property
    def bounded(self) -> bool:
        """Whether both bounds are known."""
        return self.high < math.inf

    def times(self, factor: float) -> CostRange:
        return CostRange(self.low * factor, self.high * factor, None if self.centre is None else self.centre * factor)

    def over(self, other: CostRange) -> CostRange:
        """Returns the bounds of the ratio to another range, from the extremes of both."""
        low = self.low / other.high
        return CostRange(low, self.high / other.low if other.low and self.bounded else math.inf)


@dataclass(frozen=True, slots=True)
class Offer:
    """A system that can be bought: a candidate of a cost comparison."""

    name: str
    records: str
    """Label of the records that measured it."""
    servers: int
    sockets: int
    """Processor sockets per server; cores, memory and power are also per server."""
    cores: int
    """Physical cores."""
    processor: str = ""
    memory_gb: float | None = None
    storage_tb: float = 0.0
    """Storage of all servers together."""
    watts: float = 0.0
    buy: tuple[str, ...] = ()
    """Names of the prices that the candidate pays."""
    score: float | None = None
    """Score of one server, if no records measured it."""
    share_of: str = ""
    """Name of the candidate whose score this one's score is estimated from."""
    share: CostRange | None = None
    """Estimated score of one server as a fraction of the score of `share_of`."""
    core_speed: CostRange | None = None
    """Estimated speed of one core relative to a core of `share_of`."""
    source: str = ""
    """Source of score, shares and speed."""

    @property
    def all_cores(self) -> int:
        return self.servers * self.cores


@dataclass(frozen=True, slots=True)
class CostItem:
    """An item of a cost breakdown."""

    name: str
    units: Decimal
    """Units paid for, with pack sizes and minimum quantities applied."""
    unit: str
    price: Decimal
    """Price of one unit, in the currency of the price list."""
    currency: str
    times: Decimal
    """Number of payments: 1, or the number of months or years."""
    amount: Decimal
    """Total of the item, in the currency of the breakdown."""
    notes: tuple[Note, ...] = ()
    """How the units were counted, and the exchange rate."""
    estimate: bool = False
    every: str = "once"
    """Billing period: `once`, `month` or `year`."""


@dataclass(frozen=True, slots=True)
class CostBreakdown:
    """Cost breakdown of a candidate, all in one currency."""

    offer: Offer
    currency: str
    lines: tuple[CostItem, ...]
    cautions: tuple[Note, ...] = ()
    """Why the edition bought may perform differently from the edition measured."""
    years: Decimal | None = None
    """Period over which running costs are added up; None: everything is paid once."""

    @property
    def total(self) -> Decimal:
        return sum((line.amount for line in self.lines), Decimal(0))

    @property
    def estimate(self) -> bool:
        return any(line.estimate for line in self.lines)
