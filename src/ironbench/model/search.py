"""The search for the best load, and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from ironbench.model.constraints import Amount, Count, Name, Natural, Positive, Share, one_of
from ironbench.model.note import Note, text_note


@dataclass(frozen=True, slots=True)
class Limit:
    """An upper limit for a metric. The search assumes that the metric increases with load."""

    metric: Name
    """Name of the metric in the catalogue."""
    most: Positive
    """The limit, in the metric's base unit, above 0."""

    @property
    def text(self) -> str:
        return f"{self.metric} <= {self.most:g}"


@dataclass(frozen=True, slots=True)
class Search:
    """A search for the highest throughput within limits, over a range of clients or rates."""

    of: Annotated[str, one_of("clients", "rate")]
    """The load parameter that the search varies: `clients` or `rate`."""
    low: Count
    high: Count
    limits: tuple[Limit, ...] = ()
    repeats: Count = 2
    """Number of trials at each load. Several trials are needed to show the variation."""
    most_repeats: Count = 6
    """Maximum number of trials at a load that decides the result."""
    resolution: Annotated[float, Meta(ge=1, le=1000)] = 1.1
    """The search ends when the next lower and the next higher measured load differ from the best load by at most this
    factor."""
    indifference: Share = 0.02
    """Loads whose throughput differs by at most this fraction count as equally good. The lowest of them is the best
    load."""
    expected: Natural = 0
    """Approximate number of trials that the search takes. 0 if unknown."""


@dataclass(frozen=True, slots=True)
class MeasuredLoad:
    """The trials at one load."""

    point: Count
    trials: Natural
    throughput: Amount
    """Geometric mean of the comparable trials, 1/s. 0 if there are none."""
    limited: tuple[float, ...] = ()
    """Medians of the metrics that have a limit, in base units and in the order of the limits. Empty if there are no
    limits."""


@dataclass(frozen=True, slots=True)
class ChosenLoad:
    """The load that a search chose for a configuration of a lab."""

    point: Count | None
    """The chosen load: clients, or transactions per second. The value is None if no load in the range could be
    measured."""
    sentence: str
    tried: tuple[MeasuredLoad, ...]
    trials: tuple[Name, ...]
    """Ids of the records on which the choice is based."""
    result: Note | None = None
    """The facts of the search result, or None in labs of earlier versions, which have only `sentence`."""
    failed: bool = False
    """Whether the trials at the lowest load failed, so that nothing could be measured."""

    @property
    def note(self) -> Note:
        """The result of the search as a note. In labs of earlier versions, the note consists of a sentence."""
        return self.result or text_note(self.sentence)
