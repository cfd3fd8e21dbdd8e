"""The optimum search and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from ironbench.model.constraints import Amount, Count, Name, Natural, Positive, Share, one_of
from ironbench.model.note import Note, text_note


@dataclass(frozen=True, slots=True)
class Limit:
    """A metric that must not exceed a value; the metric is assumed to increase with load."""

    metric: Name
    """Catalogue name."""
    most: Positive
    """The limit, in the metric's base unit, above 0."""

    @property
    def text(self) -> str:
        return f"{self.metric} <= {self.most:g}"


@dataclass(frozen=True, slots=True)
class Search:
    """A search for the highest throughput over a range of clients or rates, within limits."""

    of: Annotated[str, one_of("clients", "rate")]
    """`clients` or `rate`."""
    low: Count
    high: Count
    limits: tuple[Limit, ...] = ()
    repeats: Count = 2
    """Number of trials at each load, so that the variation is known."""
    most_repeats: Count = 6
    """Maximum number of trials at a load that decides the result."""
    resolution: Annotated[float, Meta(ge=1, le=1000)] = 1.1
    """The search also measures a higher and a lower load that differ from the best load by less than this factor."""
    indifference: Share = 0.02
    """If throughput at several loads differs by less than this fraction, the lowest of these loads counts as the
    best."""
    expected: Natural = 0
    """Approximate number of trials that the search takes; 0: unknown."""


@dataclass(frozen=True, slots=True)
class MeasuredLoad:
    """The trials at one load."""

    point: Count
    trials: Natural
    throughput: Amount
    """Geometric mean of the comparable trials, 1/s; 0 if there are none."""
    limited: tuple[float, ...] = ()
    """Medians of the limited metrics, in the order of the limits and in base units; empty if there are no limits."""


@dataclass(frozen=True, slots=True)
class ChosenLoad:
    """The load that a search chose for a configuration of a lab."""

    point: Count | None
    """Clients, or transactions per second; None: no load in the range could be measured."""
    sentence: str
    tried: tuple[MeasuredLoad, ...]
    trials: tuple[Name, ...]
    """Ids of the records that the choice is based on."""
    result: Note | None = None
    """The facts behind `sentence`; None in labs of earlier versions."""
    failed: bool = False
    """The trials at the lowest load failed, so nothing could be measured."""

    @property
    def note(self) -> Note:
        """The result of the search; a sentence in labs of earlier versions."""
        return self.result or text_note(self.sentence)
