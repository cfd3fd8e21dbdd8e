"""The content of a report: pages with an answer, caveats and sections. Output formats convert pages to text, HTML and
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

CAVEATS = "Before you use these numbers"
"""Title of a page's caveats, in every format."""


@dataclass(frozen=True, slots=True)
class AnswerPoint:
    """A result, and the caveat that limits it."""

    text: str
    name: str = ""
    """Name that is shown before the text, such as the system that the result is about. Empty if the text already
    contains it."""
    caveat: str = ""

    @property
    def sentence(self) -> str:
        return " ".join(filter(None, (self.name, self.text, self.caveat)))


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer at the top of a report, with the fields in reading order."""

    decision: AnswerPoint
    """The result that answers the question of the report. This result is shown first."""
    points: tuple[AnswerPoint, ...] = ()
    """All other results."""
    limit: str = ""
    """The bottleneck of the baseline. Empty if it was not observed."""
    caveats: tuple[str, ...] = ()
    """Caveats that apply to all results."""

    @property
    def sentences(self) -> list[str]:
        """All sentences of the answer in reading order, for output without layout."""
        texts = [self.decision.sentence, *(point.sentence for point in self.points), self.limit, *self.caveats]
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
    """Pairs of a name and a table. If the section's title already describes the table, the name is empty."""
    flames: tuple[FlameGraph, ...] = ()
    """Flame graphs. Only HTML pages draw them."""
    texts: tuple[tuple[str, str], ...] = ()
    """Pairs of a name and a text, such as a script. HTML pages and files show the texts unchanged. The terminal does
    not show them."""
    sentences: tuple[str, ...] = ()
    """Sentences that summarise the charts and tables. The terminal also shows them."""
    bars: Bars | None = None
    self_titled: bool = False
    """Whether the section's title is left out, because the titles of its charts are sufficient."""
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
        """Returns the charts that an output of this depth shows."""
        return [chart for chart in self.charts if max(self.depth.value, chart.depth.value) <= depth.value]

    @property
    def every_table(self) -> Iterator[tuple[str, Table]]:
        """Yields all tables for programs, as pairs of a name and a table: the tables of the charts, followed by the
        section's other tables."""
        drawn = [chart.table for chart in self.charts]
        yield from ((chart.title, chart.table) for chart in self.charts)
        yield from ((name, table) for name, table in self.tables if table not in drawn)

    def tables_at(self, depth: Depth) -> list[tuple[str, Table]]:
        return [] if self.depth.value > depth.value else [one for one in self.tables if one[1].rows]


def with_rows(table: Table, name: str = "") -> tuple[tuple[str, Table], ...]:
    """Returns the value of `Section.tables` for a section with this table. Returns () if the table has no rows."""
    return ((name, table),) if table.rows else ()


EVERYWHERE = "all configurations"
"""`by_value` returns this text instead of names if all configurations have the same value."""


def by_value(values: Iterable[tuple[str, Value]]) -> Iterator[tuple[Value, str]]:
    """Yields each different value once, with the names of the configurations that have it. `values`: pairs of a
    configuration's name and a value."""
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
    """Name of a colour. `ironbench.report.theme` defines the names of colours and marks."""
    figure: Content
    unit: str
    facts: tuple[tuple[str, Content], ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """A command that repeats the measurement."""

    line: str
    name: str = ""
    """Name of the system that the command measures. Empty if the command repeats the whole measurement."""
    file: str = ""
    """Name of the file that the command reads, without suffix."""
    source: str = ""
    """Text of the file that the command reads."""


@dataclass(frozen=True, slots=True)
class Page:
    """The page of a study or of a command, with the fields in reading order."""

    title: str
    lead: str
    """A line that names the workload or the records that the page is about."""
    answer: Answer
    sections: tuple[Section, ...]
    caveats: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    derived: str = ""
    kicker: tuple[str, ...] = ()
    """Short phrases about the measurement, such as its time and its machine."""
    cards: tuple[Card, ...] = ()
    peaks: Table = _NO_ROWS
    """A table that replaces the cards in formats without cards. Empty if a section contains the same rows."""
    commands: tuple[Command, ...] = ()
    caption: str = ""
    """The note that must accompany the page's charts in a picture."""
    kind: str = ""
    """For a report about records, the JSON field that contains the pages: `studies`, `labs` or `foreign`. Empty for
    other pages."""
    seconds: Callable[[], Iterable[tuple[str, SecondOfTrial]]] = tuple
    """Function that returns the values of every second of every trial, each with the name of the trial's
    configuration."""
    fields: Callable[[], dict[str, Any]] = dict
    """Function that returns the content of the page for programs. Values are in base units, and metrics have the same
    names as in records."""

    @property
    def shown(self) -> tuple[Section, ...]:
        return tuple(part for part in self.sections if part.shows_something)

    def specifications(self, prefix: str) -> dict[str, dict[str, Any]]:
        """Returns the charts' specifications for an HTML page. The keys are the ids of the HTML elements that contain
        the charts."""
        return {f"{prefix}-chart-{one.id}": one.embedded for part in self.sections for one in part.charts}
