"""Every computed value in base units, for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ironbench.model.record import SCHEMA
from ironbench.report.as_json import encoded
from ironbench.report.cell import typed
from ironbench.report.page import Page, Section


def render(pages: Sequence[Page], contents: Section | None = None) -> bytes:
    """Returns `{schema, studies: […]}` for runs, `{schema, labs: […]}` for labs, or `{schema, foreign: […]}` for
    foreign records. Trials are identified by their id. For any other page, returns only the fields of this page:
    `{schema, title, answer, …}`."""
    documents = [{**page.fields(), "tables": tables(page.shown)} for page in pages]
    if any(page.kind for page in pages):
        kind = "labs" if any(page.kind == "labs" for page in pages) else pages[0].kind
        return encoded({"schema": SCHEMA, kind: documents})
    page, found = pages[0], documents[0]
    return encoded({"schema": SCHEMA, "title": page.title, "answer": page.answer.sentences, **found})


def tables(sections: Sequence[Section]) -> list[dict[str, Any]]:
    """Returns the tables of all sections. Numbers are unrounded and in base units. A cell without a value is null or
    states the reason."""
    return [
        {
            "section": section.title,
            "table": name,
            "columns": table.head,
            "rows": [list(map(typed, row)) for row in table.rows],
        }
        for section in sections
        for name, table in section.every_table
        if table.rows
    ]
