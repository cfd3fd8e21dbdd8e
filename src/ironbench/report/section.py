"""What a report is made of."""

from __future__ import annotations

from dataclasses import dataclass

from ironbench.report.charts.base import Chart, Table


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, what to know before looking, and the charts or tables under it."""

    id: str
    title: str
    lead: str = ""
    charts: tuple[Chart, ...] = ()
    tables: tuple[tuple[str, Table], ...] = ()

    @property
    def paragraphs(self) -> list[str]:
        return [text for text in self.lead.split("\n\n") if text]
