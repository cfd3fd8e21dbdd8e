"""A page that is no report of one study: an answer and sections. Formats write it down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ironbench.report.section import Answer, Section


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
    fields: dict[str, Any] = field(default_factory=dict)
    """The same for programs: base units, catalogue names."""

    @property
    def shown(self) -> tuple[Section, ...]:
        return tuple(part for part in self.sections if part.shows_something)
