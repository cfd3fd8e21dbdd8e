"""What a report is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ironbench.report.charts.base import Chart, Depth, Table


@dataclass(frozen=True, slots=True)
class Point:
    """One thing that was found, and right after it what keeps it from being surer."""

    text: str
    name: str = ""
    """Whom it is about, where the text does not say: shown before it."""
    doubt: str = ""

    @property
    def sentence(self) -> str:
        return " ".join(filter(None, (self.name, self.text, self.doubt)))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a report begins with, in reading order."""

    decision: Point
    """The strongest there is, as one sentence."""
    points: tuple[Point, ...] = ()
    """Everything else that was found."""
    limit: str = ""
    """What holds the baseline back; empty where it was not observed."""
    doubts: tuple[str, ...] = ()
    """About all of the above."""

    @property
    def sentences(self) -> list[str]:
        """All of it without its form, for pictures."""
        said = [self.decision.sentence, *(point.sentence for point in self.points), self.limit, *self.doubts]
        return [text for text in said if text]


@dataclass(frozen=True, slots=True)
class Bars:
    """Values to be drawn with characters where charts cannot be."""

    title: str
    rows: tuple[tuple[str, float, str], ...]
    """Each a name, its value, and the value in words."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, what to know before looking, and the charts, tables or texts under it."""

    id: str
    title: str
    lead: str = ""
    """How to read it."""
    charts: tuple[Chart, ...] = ()
    tables: tuple[tuple[str, Table], ...] = ()
    """Each with a name, "" for the one that the title names."""
    texts: tuple[tuple[str, str], ...] = ()
    """Name and content, to be shown as written; in files and on pages alone."""
    sentences: tuple[str, ...] = ()
    """What its charts and tables come to, said on the terminal, too."""
    bars: Bars | None = None
    self_titled: bool = False
    """Whether the titles of its charts are understood without its own."""
    depth: Depth = Depth.EVERYWHERE
    at_end: bool = False
    """Whether `run` and `lab run` end with it."""

    @property
    def shows_something(self) -> bool:
        return bool(self.charts or self.texts) or any(table.rows for _, table in self.tables)

    @property
    def paragraphs(self) -> list[str]:
        return [text for text in (*self.lead.split("\n\n"), *self.sentences) if text]

    def charts_at(self, depth: Depth) -> list[Chart]:
        """Those that are written out as far down as `depth`."""
        return [chart for chart in self.charts if max(self.depth.value, chart.depth.value) <= depth.value]

    def tables_at(self, depth: Depth) -> list[tuple[str, Table]]:
        return [] if self.depth.value > depth.value else [one for one in self.tables if one[1].rows]


def some(table: Table, name: str = "") -> tuple[tuple[str, Table], ...]:
    """`table` for a section, if it has rows."""
    return ((name, table),) if table.rows else ()


def by_value(values: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Each value once, with the names of those that have it."""
    names: dict[str, list[str]] = {}
    for name, value in values:
        names.setdefault(value, []).append(name)
    for value, found in names.items():
        yield value, "every cell" if len(names) == 1 else ", ".join(found)
