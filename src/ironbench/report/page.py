"""A page that is no report of one study: an answer and sections, in every format that reports have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from typing import Any

from ironbench.model.record import SCHEMA
from ironbench.report import elements, plain
from ironbench.report.as_json import encoded
from ironbench.report.charts.base import Chart
from ironbench.report.formats import csv, md, png
from ironbench.report.section import Answer, Section


@dataclass(frozen=True, slots=True)
class Page:
    """In reading order; a format only writes it down."""

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


def as_text(page: Page) -> bytes:
    heading = "\n".join(map(plain.clean, filter(None, (page.title, page.lead))))
    blocks = [
        heading,
        page.derived,
        plain.answer(page.answer),
        plain.bullets("Before you use these numbers", page.cautions),
    ]
    blocks += [block for part in page.shown for block in plain.section(part)]
    blocks.append(plain.bullets("Notes", page.notes))
    return ("\n\n".join(block for block in blocks if block) + "\n").encode()


def as_md(page: Page) -> bytes:
    blocks = [f"# {md.escaped(page.title)}", md.escaped(page.lead), md.escaped(page.derived), *md.answer(page.answer)]
    blocks += ["## Before you use these numbers", md.bullets(page.cautions)] if page.cautions else []
    blocks += [block for part in page.shown for block in md.section(part)]
    blocks += ["## Notes", md.bullets(page.notes)] if page.notes else []
    return ("\n\n".join(filter(None, blocks)) + "\n").encode()


def as_html(page: Page) -> bytes:
    charts: dict[str, Chart] = {}
    return elements.page(page.title, [body(page, "page", charts)], charts)


def body(page: Page, prefix: str, charts: dict[str, Chart]) -> str:
    """Header and main of an HTML page; its charts enter `charts` under the ids of their places."""
    derived = f'<p class="lead"><strong>{escape(page.derived)}</strong></p>' if page.derived else ""
    parts = [
        f'<header class="top" id="{prefix}"><h1>{escape(page.title)}</h1><p class="lead">{escape(page.lead)}</p>'
        f"{derived}</header><main>{elements.NO_SCRIPT}",
        elements.answer(page.answer),
        elements.cautions(page.cautions),
        *(elements.section(part, prefix, charts) for part in page.shown),
    ]
    if page.notes:
        parts.append(f'<section><h2>Notes</h2><ol class="notes">{elements.items(page.notes)}</ol></section>')
    return "\n".join([*parts, "</main>"])


def as_csv(page: Page) -> bytes:
    rows = [*csv.words(page.title, page.answer, page.derived, page.cautions)]
    rows += [row for part in page.shown for row in csv.section(page.title, part)]
    return csv.written(iter(rows))


def as_json(page: Page) -> bytes:
    return encoded({"schema": SCHEMA, "title": page.title, "answer": page.answer.sentences, **page.fields})


def _drawn(page: Page) -> dict[str, Any]:
    notes = (page.lead, page.derived, *page.answer.sentences, *(f"Note: {one}" for one in page.cautions))
    drawn = [png.section(part) for part in page.shown if part.charts]
    return png.picture([png.titled(page.title, [one for one in notes if one], drawn)])


FORMATS: dict[str, Callable[[Page], bytes]] = {
    "text": as_text,
    "html": as_html,
    "md": as_md,
    "json": as_json,
    "csv": as_csv,
    "png": lambda page: png.drawn_png(_drawn(page)),
    "svg": lambda page: png.drawn_svg(_drawn(page)),
}
"""By the name that `--format` takes."""
