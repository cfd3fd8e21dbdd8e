"""The content of a report: a page with an answer, caveats and typed sections. Formats convert pages to text, HTML and
so on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ironbench.report.cell import Content, TableCell
from ironbench.report.charts.base import Chart, Depth, Table

if TYPE_CHECKING:
    from ironbench.report.charts.flame import FlameGraph
    from ironbench.study.timelines import SecondOfTrial

Value = TypeVar("Value")

CAUTIONS = "Before you use these numbers"
"""Title of a page's caveats, in every format."""


@dataclass(frozen=True, slots=True)
class AnswerPoint:
    """A result, with the caveat that makes it less certain."""

    text: str
    name: str = ""
    """Name of the system that the result is about, shown first. Empty if the text contains the name."""
    doubt: str = ""

    @property
    def sentence(self) -> str:
        return " ".join(filter(None, (self.name, self.text, self.doubt)))


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer at the top of a report. Its fields are in reading order."""

    decision: AnswerPoint
    """The most certain result, in one sentence."""
    points: tuple[AnswerPoint, ...] = ()
    """All other results."""
    limit: str = ""
    """Bottleneck of the baseline; empty if it was not observed."""
    doubts: tuple[str, ...] = ()
    """Caveats that apply to all results."""

    @property
    def sentences(self) -> list[str]:
        """All sentences of the answer in reading order, for output without layout."""
        texts = [self.decision.sentence, *(point.sentence for point in self.points), self.limit, *self.doubts]
        return [text for text in texts if text]


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars drawn with characters, for output that cannot show charts."""

    title: str
    rows: tuple[tuple[str, TableCell], ...]
    """Pairs of a bar's name and its value."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, an introduction, and the charts, tables or texts below it."""

    id: str
    title: str
    lead: str = ""
    """Explanation of how to read the section."""
    charts: tuple[Chart, ...] = ()
    tables: tuple[tuple[str, Table], ...] = ()
    """Pairs of a name and a table. The name is empty for the table that the section's title describes."""
    flames: tuple[FlameGraph, ...] = ()
    """Flame graphs, which HTML pages draw."""
    texts: tuple[tuple[str, str], ...] = ()
    """Pairs of a name and a text. The texts are shown unchanged in files and on pages, but not on the terminal."""
    sentences: tuple[str, ...] = ()
    """Summaries of the charts and tables, which the terminal also shows."""
    bars: Bars | None = None
    self_titled: bool = False
    """Whether the charts' titles make a title of the section unnecessary."""
    depth: Depth = Depth.EVERYWHERE
    printed_at_end: bool = False
    """Whether `run` and `lab run` print the section when they end."""

    @property
    def shows_something(self) -> bool:
        return bool(self.charts or self.flames or self.texts or self.sentences or self.bars) or any(
            table.rows for _, table in self.tables
        )

    @property
    def paragraphs(self) -> list[str]:
        return [text for text in (*self.lead.split("\n\n"), *self.sentences) if text]

    def charts_at(self, depth: Depth) -> list[Chart]:
        """Returns the charts that a format of this depth shows."""
        return [chart for chart in self.charts if max(self.depth.value, chart.depth.value) <= depth.value]

    @property
    def every_table(self) -> Iterator[tuple[str, Table]]:
        """Yields the tables of the charts and the section's own tables, each once and with its name, for programs."""
        drawn = [chart.table for chart in self.charts]
        yield from ((chart.title, chart.table) for chart in self.charts)
        yield from ((name, table) for name, table in self.tables if table not in drawn)

    def tables_at(self, depth: Depth) -> list[tuple[str, Table]]:
        return [] if self.depth.value > depth.value else [one for one in self.tables if one[1].rows]


def with_rows(table: Table, name: str = "") -> tuple[tuple[str, Table], ...]:
    """Returns `table` in the form in which a section contains tables; empty if the table has no rows."""
    return ((name, table),) if table.rows else ()


EVERYWHERE = "all configurations"
"""Name that `by_value` returns for a value that all configurations have."""


def by_value(values: Iterable[tuple[str, Value]]) -> Iterator[tuple[Value, str]]:
    """Yields each value once, with the names of all configurations that have it. `values`: pairs of name and value."""
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
    """Colour of the card. `colour` and `mark` are names that `ironbench.report.theme` defines."""
    figure: Content
    unit: str
    facts: tuple[tuple[str, Content], ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """A command that repeats the measurement."""

    line: str
    name: str = ""
    """Name of the system that the command measures; empty if the command repeats everything."""
    file: str = ""
    """Name of the file that the command reads, without suffix."""
    source: str = ""
    """Text of the file that the command reads."""


@dataclass(frozen=True, slots=True)
class Page:
    """The page of a study or of a command. Its fields are in reading order."""

    title: str
    lead: str
    """One line that names the workload or the records that the page is about."""
    answer: Answer
    sections: tuple[Section, ...]
    cautions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    derived: str = ""
    kicker: tuple[str, ...] = ()
    """Time and machine of the measurement as short phrases."""
    cards: tuple[Card, ...] = ()
    peaks: Table = _NO_ROWS
    """The cards as a table, for formats without cards. Empty if a section contains the same rows."""
    commands: tuple[Command, ...] = ()
    caption: str = ""
    """The note that a picture of the page's charts must have."""
    kind: str = ""
    """For a report of records: `studies`, `labs` or `foreign`, the name under which the JSON document contains the
    pages. Otherwise empty."""
    seconds: Callable[[], Iterable[tuple[str, SecondOfTrial]]] = tuple
    """Function that returns every second of every trial, with the name of the trial's configuration."""
    fields: Callable[[], dict[str, Any]] = dict
    """Function that returns the content for programs: values in base units, with metric names as in records."""

    @property
    def shown(self) -> tuple[Section, ...]:
        return tuple(part for part in self.sections if part.shows_something)

    def specifications(self, prefix: str) -> dict[str, dict[str, Any]]:
        """Returns the specifications of the charts for an HTML page, by the id of the element that contains the
        chart."""
        return {f"{prefix}-chart-{one.id}": one.embedded for part in self.sections for one in part.charts}
