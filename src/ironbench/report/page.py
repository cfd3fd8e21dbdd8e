"""A page: an answer, cautions and typed sections. Every command that prints one builds it; formats write it down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ironbench.report.cell import Content
from ironbench.report.charts.base import Table
from ironbench.report.section import Answer, Section

_NO_ROWS = Table((), ())


@dataclass(frozen=True, slots=True)
class Card:
    """A system's result, or how a comparison ended, at a glance."""

    name: str
    mark: str
    colour: str
    """Mark and colour are names of the theme."""
    figure: Content
    unit: str
    facts: tuple[tuple[str, Content], ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """A command that repeats the measurement."""

    line: str
    name: str = ""
    """The system that it measures; empty for the whole."""
    file: str = ""
    """Name of the file that it reads, without suffix."""
    source: str = ""
    """That file's text."""


@dataclass(frozen=True, slots=True)
class Page:
    """In reading order."""

    title: str
    lead: str
    """What it is made of, in a line."""
    answer: Answer
    sections: tuple[Section, ...]
    cautions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    derived: str = ""
    kicker: tuple[str, ...] = ()
    """Time and machine, in short words."""
    cards: tuple[Card, ...] = ()
    peaks: Table = _NO_ROWS
    """The cards as a table, for formats without cards; without rows where a section has the same."""
    commands: tuple[Command, ...] = ()
    caption: str = ""
    """The note that a picture of its charts cannot do without."""
    kind: str = ""
    """`studies` or `labs` for a report of records: its JSON document lists all pages under this name."""
    fields: Callable[[], dict[str, Any]] = dict
    """The same for programs: base units, catalogue names."""

    @property
    def shown(self) -> tuple[Section, ...]:
        return tuple(part for part in self.sections if part.shows_something)

    def specifications(self, prefix: str) -> dict[str, dict[str, Any]]:
        """Its charts as an HTML page embeds them, by the id of their places."""
        return {f"{prefix}-chart-{one.id}": one.embedded for part in self.sections for one in part.charts}
