"""CSV of a report: every cell of every table, its value in base units, and the doubts that belong to it."""

import csv
import io
import math
from dataclasses import replace

import pytest
from factories import DISK, Shelf, example, record, suspect
from labfactory import lab, studied, trials

from ironbench.analyse.study import studies
from ironbench.report import formats
from ironbench.report.numbers import base_value, quantity
from ironbench.report.sections import sections


def lines(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode())))


@pytest.mark.parametrize(
    ("value", "unit"),
    [
        (0.0123, "s"), (4.2e-7, "s"), (180.0, "s"), (7200.0, "s"), (31_600.0, "1/s"), (2.5e9, "bytes/s"),
        (24 * 2.0**30, "memory"), (1.5e6, "bytes"), (2_880.0, "queries/h × SF"), (0.55, "share"),
    ],
)  # fmt: skip
def test_a_cell_is_read_back_in_its_base_unit(value: float, unit: str) -> None:
    base = {"memory": "bytes", "share": "1"}.get(unit, unit)
    found = base_value(quantity(value, unit))
    assert found is not None and found[1] == base
    assert math.isclose(found[0], value, rel_tol=0.005)


def test_words_and_ranges_are_no_quantity_and_a_centre_with_its_range_is_its_centre() -> None:
    assert [base_value(text) for text in ("faster", "1.55 to 1.62", "not known", "", "8 of 8", "> 100\u202f%")] == [
        None
    ] * 6
    assert base_value("22\u202f500/s (9\u202f350 to 29\u202f600/s)") == (22500.0, "1/s")
    assert base_value("\u22122.35\u202fms") == pytest.approx((-0.00235, "s"))
    assert base_value("2.34\u202f×") == (2.34, "1")
    assert base_value("7") == (7.0, ""), "the column's head says the unit"


def test_every_table_of_a_run_is_in_the_file() -> None:
    found = studies(example(), Shelf(example()))
    rows = lines(formats.get("csv")(found))
    assert tuple(rows[0]) == ("report", "section", "table", "row", "column", "text", "value", "unit")
    wanted = {(section.title, name) for section in sections(found[0]) for name, _ in section.tables}
    wanted |= {(section.title, chart.title) for section in sections(found[0]) for chart in section.charts}
    assert wanted <= {(row["section"], row["table"]) for row in rows}
    peaks = [row for row in rows if row["section"] == "Peaks" and row["column"] == "throughput"]
    assert [row["unit"] for row in peaks] == ["1/s", "1/s"]
    assert all(float(row["value"]) > 1000 for row in peaks)


def test_every_table_of_a_lab_is_in_the_file_once() -> None:
    plan = lab({"log": ("disk", "memory")}, blocks=6)
    records = trials(plan, {"log=disk": 1000.0, "log=memory": 1500.0}, observed=True)
    study = studied(plan, records)
    rows = lines(formats.get("csv")([study]))
    assert {section.title for section in sections(study)} <= {row["section"] for row in rows}
    assert sum(row["column"] == "verdict" for row in rows) == 1


def test_answer_and_doubts_travel_with_the_numbers() -> None:
    rows = lines(formats.get("csv")(studies([suspect(record())], Shelf(), {"igen-oltp": "Derived: not comparable."})))
    assert rows[0]["section"] == "Answer"
    doubts = [row["text"] for row in rows if row["section"] == "Before you use these numbers"]
    assert doubts[0] == "Derived: not comparable." and any("97\u202f% busy" in text for text in doubts)


def test_a_label_is_no_formula_of_a_spreadsheet() -> None:
    trial = record(replace(DISK, label='=HYPERLINK("http://x")'))
    rows = lines(formats.get("csv")(studies([trial], Shelf())))
    cells = [cell for row in rows for cell in row.values()]
    assert not [cell for cell in cells if cell.startswith(("=", "@"))]
    assert any(cell.startswith("'=HYPERLINK") for cell in cells)
