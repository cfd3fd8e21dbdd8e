"""What a report is made of."""

from __future__ import annotations

from dataclasses import dataclass

from ironbench.report.charts.base import Chart, Table


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
class Section:
    """A heading, what to know before looking, and the charts, tables or texts under it."""

    id: str
    title: str
    lead: str = ""
    charts: tuple[Chart, ...] = ()
    tables: tuple[tuple[str, Table], ...] = ()
    texts: tuple[tuple[str, str], ...] = ()
    """Name and content, to be shown as written."""

    @property
    def has_content(self) -> bool:
        return bool(self.charts or self.texts or any(table.rows for _, table in self.tables))

    @property
    def paragraphs(self) -> list[str]:
        return [text for text in self.lead.split("\n\n") if text]
