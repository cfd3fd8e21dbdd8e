"""Tables of reports on many kinds of studies: cells keep their numbers in every format."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import test_study_goldens
from factories import Shelf
from test_report_goldens import with_doubts

from ironbench.report import formats
from ironbench.report.cell import TableCell, cell_text, typed
from ironbench.report.charts.base import Table
from ironbench.report.document import report
from ironbench.report.formats import json as as_json
from ironbench.study.runstudy import studies
from ironbench.study.study import Study


def made(name: str, monkeypatch: pytest.MonkeyPatch) -> list[Study]:
    """Returns the studies of a golden document."""
    if name == "with-doubts":
        trials = with_doubts()
        return studies(trials, Shelf(trials))
    found: list[Study] = []
    with monkeypatch.context() as patched:
        patched.setattr(formats, "get", lambda _: lambda known: found.extend(known) or b"{}")
        test_study_goldens.MADE[name]()
    return found


def tables(study: Study) -> Iterator[tuple[str, Table]]:
    """Yields every table of a report, including those of charts, with a name for messages."""
    content = report(study)
    yield "peaks", content.peaks
    for section in content.sections:
        yield from ((f"{section.id}: {name}", table) for name, table in section.every_table)


NAMES = ["with-doubts", *(name for name in test_study_goldens.MADE if name not in ("compared", "gated", "run-as-json"))]
"""Kinds of studies. The other documents are not reports."""


@pytest.mark.parametrize("name", NAMES)
def test_csv_has_every_cell_with_its_unrounded_numbers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for study in made(name, monkeypatch):
        lines = csv.DictReader(io.StringIO(formats.get("csv")([study]).decode()))
        written = Counter(
            (line["column"], tuple(float(line[one] or "nan") for one in ("value", "low", "high")), line["unit"])
            for line in lines
            if line["unit"]
        )
        kept = Counter(
            (column, tuple(float(fields.get(one, "nan")) for one in ("value", "low", "high")), fields["unit"])
            for _, table in tables(study)
            for _, *cells in table.rows
            for column, cell in zip(table.head[1:], cells, strict=True)
            if isinstance(cell, TableCell) and cell_text(cell)
            for fields in [typed(cell)]
        )
        assert sum(kept.values()) > 0
        assert comparable(written) == comparable(kept)


def comparable(found: Counter[Any]) -> Counter[str]:
    """Makes NaN comparable with itself."""
    return Counter({repr(key): number for key, number in found.items()})


@pytest.mark.parametrize("name", ["with-doubts", "storage", "losses"])
def test_json_has_the_cells_of_every_table(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for study in made(name, monkeypatch):
        content = report(study)
        kept = [table for section in content.sections for _, table in section.every_table if table.rows]
        written = as_json.tables(content.sections)
        assert [one["columns"] for one in written] == [table.head for table in kept]
        for one, table in zip(written, kept, strict=True):
            assert one["rows"] == [list(map(typed, row)) for row in table.rows]


@pytest.mark.parametrize("name", NAMES)
def test_no_column_of_numbers_has_a_number_as_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of words may contain recorded facts beside numbers."""
    mixed = [
        (place, column, [cell for cell in cells if isinstance(cell, str)])
        for study in made(name, monkeypatch)
        for place, table in tables(study)
        if table.rows and not table.words
        for column, cells in list(zip(table.head, zip(*table.rows, strict=True), strict=True))[1:]
        if any(isinstance(cell, TableCell) for cell in cells) and any(isinstance(cell, str) for cell in cells)
    ]
    assert not mixed


@pytest.mark.parametrize("name", NAMES)
def test_a_text_that_begins_with_a_digit_is_no_number(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number in a table is a cell; names such as `4 clients` are in the first column."""
    texts = [
        (place, cell)
        for study in made(name, monkeypatch)
        for place, table in tables(study)
        if not table.words
        for _, *cells in table.rows
        for cell in cells
        if isinstance(cell, str) and cell[:1].isdigit()
    ]
    assert not texts
