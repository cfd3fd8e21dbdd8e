"""The price of a system: the candidate and its cost breakdown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from ironbench.model.note import Note


@dataclass(frozen=True, slots=True)
class CostRange:
    """A single number, the bounds of an estimate, or a measured value with its confidence interval."""

    low: float
    high: float
    """Upper bound, which is infinite for a value that was measured only once."""
    centre: float | None = None
    """The measured value, or None for an estimate or a given number."""

    @property
    def bounded(self) -> bool:
        """Whether both bounds are known."""
        return self.high < math.inf

    def times(self, factor: float) -> CostRange:
        return CostRange(self.low * factor, self.high * factor, None if self.centre is None else self.centre * factor)

    def over(self, other: CostRange) -> CostRange:
        """Divides this range by another. Returns the range of all quotients of a value in this range and a value in the
        other."""
        low = self.low / other.high
        return CostRange(low, self.high / other.low if other.low and self.bounded else math.inf)


@dataclass(frozen=True, slots=True)
class Offer:
    """A system that can be bought: a candidate in a cost comparison."""

    name: str
    records: str
    """The user's label of the records in which the candidate was measured."""
    servers: int
    sockets: int
    """Processor sockets per server. Cores, memory and power are also given per server."""
    cores: int
    """Physical cores per server."""
    processor: str = ""
    memory_gb: float | None = None
    storage_tb: float = 0.0
    """Storage of all servers together, in TB."""
    watts: float = 0.0
    buy: tuple[str, ...] = ()
    """Names of those prices in the price list that apply to the candidate."""
    score: float | None = None
    """Score of one server, or None if the score comes from records of the candidate."""
    share_of: str = ""
    """Name of another candidate. This candidate's score is estimated as a fraction of the other candidate's score."""
    share: CostRange | None = None
    """Estimated score of one server as a fraction of the score of `share_of`."""
    core_speed: CostRange | None = None
    """Estimated speed of one core relative to a core of `share_of`."""
    source: str = ""
    """Source of the score, the shares and the speed."""

    @property
    def all_cores(self) -> int:
        return self.servers * self.cores


@dataclass(frozen=True, slots=True)
class CostItem:
    """An item of a cost breakdown."""

    name: str
    units: Decimal
    """Number of units to pay for, with pack sizes and minimum quantities taken into account."""
    unit: str
    price: Decimal
    """Price of one unit, in the currency of the price list."""
    currency: str
    times: Decimal
    """Number of payments: 1, or the number of months or years."""
    amount: Decimal
    """Total of the item, in the currency of the breakdown."""
    notes: tuple[Note, ...] = ()
    """Notes on how the units were counted, and on the exchange rate."""
    estimate: bool = False
    every: str = "once"
    """Billing period: `once`, `month` or `year`."""


@dataclass(frozen=True, slots=True)
class CostBreakdown:
    """Cost breakdown of a candidate, all in one currency."""

    offer: Offer
    currency: str
    lines: tuple[CostItem, ...]
    caveats: tuple[Note, ...] = ()
    """Notes on limits of the licensed edition. The server exceeds these limits, so under this licence it may not reach
    the measured score."""
    years: Decimal | None = None
    """Period in years over which running costs are added up, or None if all costs are one-time costs."""

    @property
    def total(self) -> Decimal:
        return sum((line.amount for line in self.lines), Decimal(0))

    @property
    def estimate(self) -> bool:
        return any(line.estimate for line in self.lines)
