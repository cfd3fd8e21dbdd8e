"""The content of a report: a page with an answer, caveats and typed sections. Formats write pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ironbench.report.cell import Content, TableCell
from ironbench.report.charts.base import Chart, Depth, Table

if TYPE_CHECKING:
    from ironbench.study.timelines import SecondOfTrial

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class AnswerPoint:
    """A result, with the caveat that makes it less certain."""

    text: str
    name: str = ""
    """The system that the result is about, if the text does not name it; shown first."""
    doubt: str = ""

    @property
    def sentence(self) -> str:
        return " ".join(filter(None, (self.name, self.text, self.doubt)))


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer at the top of a report, in reading order."""

    decision: AnswerPoint
    """The surest result, in one sentence."""
    points: tuple[AnswerPoint, ...] = ()
    """All other results."""
    limit: str = ""
    """The baseline's bottleneck; empty if it was not observed."""
    doubts: tuple[str, ...] = ()
    """Caveats that apply to all results."""

    @property
    def sentences(self) -> list[str]:
        """The sentences without layout, for pictures."""
        texts = [self.decision.sentence, *(point.sentence for point in self.points), self.limit, *self.doubts]
        return [text for text in texts if text]


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars drawn with characters, for output that cannot show charts."""

    title: str
    rows: tuple[tuple[str, TableCell], ...]
    """Names and values."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, a lead, and the charts, tables or texts below it."""

    id: str
    title: str
    lead: str = ""
    """How to read the section."""
    charts: tuple[Chart, ...] = ()
    tables: tuple[tuple[str, Table], ...] = ()
    """Names and tables; the name is empty for the table that the section's title describes."""
    texts: tuple[tuple[str, str], ...] = ()
    """Names and contents, shown as written in files and on pages, not on the terminal."""
    sentences: tuple[str, ...] = ()
    """Summaries of the charts and tables; the terminal also shows them."""
    bars: Bars | None = None
    self_titled: bool = False
    """Whether the titles of its charts need no section title before them."""
    depth: Depth = Depth.EVERYWHERE
    at_end: bool = False
    """Whether `run` and `lab run` print it when they end."""

    @property
    def shows_something(self) -> bool:
        return bool(self.charts or self.texts or self.sentences or self.bars) or any(
            table.rows for _, table in self.tables
        )

    @property
    def paragraphs(self) -> list[str]:
        return [text for text in (*self.lead.split("\n\n"), *self.sentences) if text]

    def charts_at(self, depth: Depth) -> list[Chart]:
        """Returns the charts that a format of this depth writes out."""
        return [chart for chart in self.charts if max(self.depth.value, chart.depth.value) <= depth.value]

    @property
    def every_table(self) -> Iterator[tuple[str, Table]]:
        """Yields the tables of its charts and its own tables, each once and with its name, for programs."""
        drawn = [chart.table for chart in self.charts]
        yield from ((chart.title, chart.table) for chart in self.charts)
        yield from ((name, table) for name, table in self.tables if table not in drawn)

    def tables_at(self, depth: Depth) -> list[tuple[str, Table]]:
        return [] if self.depth.value > depth.value else [one for one in self.tables if one[1].rows]


def with_rows(table: Table, name: str = "") -> tuple[tuple[str, Table], ...]:
    """Returns `table` in the form that a section takes; empty if it has no rows."""
    return ((name, table),) if table.rows else ()


EVERYWHERE = "all configurations"
"""The name that `by_value` gives to all."""


def by_value(values: Iterable[tuple[str, Value]]) -> Iterator[tuple[Value, str]]:
    """Yields each value once, with the names of all that have it."""
    names: dict[Value, list[str]] = {}
    for name, value in values:
        names.setdefault(value, []).append(name)
    for value, holders in names.items():
        separator = "; " if any(", " in name for name in holders) else ", "
        yield value, EVERYWHERE if len(names) == 1 else separator.join(holders)


_NO_ROWS = Table((), ())


@dataclass(frozen=True, slots=True)
class Card:
    """A box with a system's result, or with the outcome of a comparison."""

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
    """The system that the command measures; empty if it repeats everything."""
    file: str = ""
    """Name of the file that the command reads, without suffix."""
    source: str = ""
    """The text of that file."""


@dataclass(frozen=True, slots=True)
class Page:
    """A report of one study or command; the fields are in reading order."""

    title: str
    lead: str
    """The work or the records that the page is about, in one line."""
    answer: Answer
    sections: tuple[Section, ...]
    cautions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    derived: str = ""
    kicker: tuple[str, ...] = ()
    """Time and machine as short phrases."""
    cards: tuple[Card, ...] = ()
    peaks: Table = _NO_ROWS
    """The cards as a table, for formats without cards; without rows if a section has the same."""
    commands: tuple[Command, ...] = ()
    caption: str = ""
    """The note that a picture of its charts must have."""
    kind: str = ""
    """`studies`, `labs` or `foreign` for a report of records: the JSON document lists all pages under this name. Else
    empty."""
    seconds: Callable[[], Iterable[tuple[str, SecondOfTrial]]] = tuple
    """Returns every second of every trial, with the name of the trial's configuration."""
    fields: Callable[[], dict[str, Any]] = dict
    """Returns the values for programs: base units, catalogue names."""

    @property
    def shown(self) -> tuple[Section, ...]:
        return tuple(part for part in self.sections if part.shows_something)

    def specifications(self, prefix: str) -> dict[str, dict[str, Any]]:
        """Returns the specifications of its charts for an HTML page, by the id of the element that contains them."""
        return {f"{prefix}-chart-{one.id}": one.embedded for part in self.sections for one in part.charts}
