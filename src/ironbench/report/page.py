"""What a report is made of: a page with an answer, warnings and typed sections. Formats write pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from ironbench.report.cell import Content, TableCell
from ironbench.report.charts.base import Chart, Depth, Table

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class AnswerPoint:
    """A result, followed by the doubt that keeps it from being surer."""

    text: str
    name: str = ""
    """The system it is about, where the text does not name it; shown first."""
    doubt: str = ""

    @property
    def sentence(self) -> str:
        return " ".join(filter(None, (self.name, self.text, self.doubt)))


@dataclass(frozen=True, slots=True)
class Answer:
    """The beginning of a report, in reading order."""

    decision: AnswerPoint
    """The surest result, as one sentence."""
    points: tuple[AnswerPoint, ...] = ()
    """All other results."""
    limit: str = ""
    """What limits the baseline; empty where it was not observed."""
    doubts: tuple[str, ...] = ()
    """Doubts about all of the above."""

    @property
    def sentences(self) -> list[str]:
        """All of it without layout, for pictures."""
        texts = [self.decision.sentence, *(point.sentence for point in self.points), self.limit, *self.doubts]
        return [text for text in texts if text]


@dataclass(frozen=True, slots=True)
class Bars:
    """Values drawn with characters where charts cannot be."""

    title: str
    rows: tuple[tuple[str, TableCell], ...]
    """Each a name and its value."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, a lead, and the charts, tables or texts under it."""

    id: str
    title: str
    lead: str = ""
    """How to read it."""
    charts: tuple[Chart, ...] = ()
    tables: tuple[tuple[str, Table], ...] = ()
    """Each with a name, "" for the one that the title names."""
    texts: tuple[tuple[str, str], ...] = ()
    """Name and content, shown as written; in files and on pages alone."""
    sentences: tuple[str, ...] = ()
    """Summaries of its charts and tables; the terminal shows them, too."""
    bars: Bars | None = None
    self_titled: bool = False
    """Whether its charts' titles need no section title before them."""
    depth: Depth = Depth.EVERYWHERE
    at_end: bool = False
    """Whether `run` and `lab run` end with it."""

    @property
    def shows_something(self) -> bool:
        return bool(self.charts or self.texts or self.sentences or self.bars) or any(
            table.rows for _, table in self.tables
        )

    @property
    def paragraphs(self) -> list[str]:
        return [text for text in (*self.lead.split("\n\n"), *self.sentences) if text]

    def charts_at(self, depth: Depth) -> list[Chart]:
        """Charts that are written out as far down as `depth`."""
        return [chart for chart in self.charts if max(self.depth.value, chart.depth.value) <= depth.value]

    @property
    def every_table(self) -> Iterator[tuple[str, Table]]:
        """The tables of its charts and its own, each once and with its name, for programs."""
        drawn = [chart.table for chart in self.charts]
        yield from ((chart.title, chart.table) for chart in self.charts)
        yield from ((name, table) for name, table in self.tables if table not in drawn)

    def tables_at(self, depth: Depth) -> list[tuple[str, Table]]:
        return [] if self.depth.value > depth.value else [one for one in self.tables if one[1].rows]


def with_rows(table: Table, name: str = "") -> tuple[tuple[str, Table], ...]:
    """`table` for a section, if it has rows."""
    return ((name, table),) if table.rows else ()


def by_value(values: Iterable[tuple[str, Value]]) -> Iterator[tuple[Value, str]]:
    """Yields each value once, with the names of those that have it."""
    names: dict[Value, list[str]] = {}
    for name, value in values:
        names.setdefault(value, []).append(name)
    for value, holders in names.items():
        yield value, "every cell" if len(names) == 1 else ", ".join(holders)


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
