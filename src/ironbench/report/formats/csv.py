"""All tables of the report in one CSV file. Each line describes one cell of a table: its text, and its unrounded
numbers in base units.

Reports about records also contain a line for each value of every second of each trial.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence

from ironbench.report.cell import Content, TableCell, cell_text, typed
from ironbench.report.charts.base import Table
from ironbench.report.numbers import unit_of
from ironbench.report.page import CAVEATS, Answer, Page, Section
from ironbench.report.text_layout import clean

_NUMBERS = ("value", "unit", "low", "high", "confidence", "t_s")
_NONE = ("",) * len(_NUMBERS)
HEAD = ("report", "section", "table", "row", "column", "text", *_NUMBERS)
_FORMULA = re.compile(r"[=@]|[+-](?![\d.])")
"""Matches the start of a text that a spreadsheet program would treat as a formula (OWASP, "CSV Injection")."""
_Row = tuple[str, ...]


def render(pages: Sequence[Page], contents: Section | None = None) -> bytes:
    """Returns UTF-8 text with a header line (RFC 4180)."""
    return written(row for page in pages for row in _rows(page))


def _rows(page: Page) -> Iterator[_Row]:
    yield from words(page.title, page.answer, page.derived, page.caveats)
    yield from _table(page.title, "Peaks", "", page.peaks)
    for part in page.shown:
        yield from section(page.title, part)
    yield from _seconds(page)


def words(title: str, answer: Answer, derived: str, caveats: Sequence[str]) -> Iterator[_Row]:
    """Yields lines with the answer and its caveats. These lines are in the same file as the numbers, so that the
    numbers are not passed on without them."""
    for number, text in enumerate(answer.sentences, 1):
        yield title, "Answer", "", str(number), "", text, *_NONE
    for number, text in enumerate(filter(None, (derived, *caveats)), 1):
        yield title, CAVEATS, "", str(number), "", text, *_NONE


def section(title: str, part: Section) -> Iterator[_Row]:
    for name, table in part.every_table:
        yield from _table(title, part.title, name, table)


def _table(title: str, section: str, name: str, table: Table) -> Iterator[_Row]:
    """Yields a line for each cell, in the order of the table."""
    for row in table.rows:
        for column, cell in zip(table.head[1:], row[1:], strict=True):
            if text := cell_text(cell):
                yield title, section, name, cell_text(row[0]), column, text, *_numbers(cell)


def _seconds(page: Page) -> Iterator[_Row]:
    """Yields a line for each value of each second. The column `row` contains the id of the trial, and `text` contains
    its status."""
    units: dict[str, str] = {}
    for configuration, one in page.seconds():
        unit = units.setdefault(one.metric, TableCell(0.0, unit_of(one.metric)).base)
        place = page.title, "Every second", configuration, one.trial, one.metric
        yield *place, one.status, str(one.value), unit, "", "", "", str(one.t_s)


def _numbers(cell: Content) -> Iterator[str]:
    """Returns the numbers of a cell in the order of `_NUMBERS`. A missing number is an empty text."""
    fields = known if isinstance(known := typed(cell), dict) else {}
    return (str(fields.get(name, "")) for name in _NUMBERS)


def written(rows: Iterator[_Row]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(HEAD)
    for row in rows:
        texts, numbers = row[: -len(_NUMBERS)], row[-len(_NUMBERS) :]
        writer.writerow([*map(_harmless, map(clean, texts)), *numbers])
    return out.getvalue().encode()


def _harmless(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) else text
