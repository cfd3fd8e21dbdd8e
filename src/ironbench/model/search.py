"""What an optimum search looks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from ironbench.model.constraints import Amount, Count, Name, Natural, Positive, Share, one_of
from ironbench.model.note import Note


@dataclass(frozen=True, slots=True)
class Limit:
    """A metric that must not exceed a value; it is taken to grow with load."""

    metric: Name
    """Catalogue name."""
    most: Positive
    """In the metric's base unit, above 0."""

    @property
    def text(self) -> str:
        return f"{self.metric} <= {self.most:g}"


@dataclass(frozen=True, slots=True)
class Search:
    """The highest throughput over a range of clients or rates, under limits."""

    of: Annotated[str, one_of("clients", "rate")]
    """`clients` or `rate`."""
    low: Count
    high: Count
    limits: tuple[Limit, ...] = ()
    repeats: Count = 2
    """Trials of every point, so that the spread is known."""
    most_repeats: Count = 6
    """Trials of a point on which the answer hangs."""
    resolution: Annotated[float, Meta(ge=1, le=1000)] = 1.1
    """The answer's neighbours were tried at less than this many times more and less."""
    indifference: Share = 0.02
    """Of points that differ by less than this share in throughput the lowest is best: it asks least of the system."""
    expected: Natural = 0
    """About how many trials it takes; 0: nobody has worked it out."""


@dataclass(frozen=True, slots=True)
class Tried:
    """The trials of one point."""

    point: Count
    trials: Natural
    throughput: Amount
    """Geometric mean of those that may be compared, 1/s; 0 where there are none."""
    limited: tuple[float, ...] = ()
    """Medians of the limits' metrics, in their order and base units; empty where there are none."""


@dataclass(frozen=True, slots=True)
class Best:
    """The load that a search chose for a cell of a lab."""

    point: Count | None
    """Clients, or transactions per second; None: no load of the range can be measured."""
    sentence: str
    tried: tuple[Tried, ...]
    trials: tuple[Name, ...]
    """Ids of the records that decided it."""
    result: Note | None = None
    """What `sentence` puts into words; None in labs of earlier versions."""
    failed: bool = False
    """The trials at the lowest load failed, so that nothing could be measured."""
