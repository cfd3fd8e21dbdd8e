"""CSV of a report: every cell of every table, its numbers in base units, and the related caveats."""

import csv
import io
import math
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import duckdb
from factories import DISK, Shelf, example, record, suspect
from labfactory import lab, studied, trials

from ironbench.report import formats
from ironbench.report.cell import Content, Missing, TableCell, typed
from ironbench.report.charts.base import Table
from ironbench.report.formats.csv import HEAD
from ironbench.report.page import Answer, AnswerPoint, Page, Section
from ironbench.report.sections import sections
from ironbench.study.runstudy import studies


def lines(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode())))


def written(*cells: Content) -> list[dict[str, str]]:
    """Returns the lines of a table with one row."""
    table = Table(("row", *map(str, range(len(cells)))), (("a", *cells),))
    page = Page("title", "", Answer(AnswerPoint("answer")), (Section("id", "section", tables=(("", table),)),))
    return [line for line in lines(formats.of_page("csv")(page)) if line["section"] == "section"]


def numbers(line: dict[str, str]) -> dict[str, float | str]:
    """Returns the numbers of a line, with the names that `typed` uses."""
    known = {name: float(line[name]) for name in ("value", "low", "high", "confidence") if line[name]}
    return {**known, "unit": line["unit"]}


def test_numbers_are_not_rounded_and_in_base_units() -> None:
    cells = (
        TableCell(0.012345678901234567, "s", 0.011, 0.0140000001, 0.95),
        TableCell(None, "ratio", 1.5512345, 1.6187654, 0.975),
        TableCell(24 * 2.0**30 + 1, "memory"),
        TableCell(0.5512345, "share", note="of the time"),
        TableCell(-0.00235123, "s", signed=True),
        TableCell(123.4e6, "MB/s", bare=True),
        TableCell(2_880.123, "queries/h × SF"),
    )
    found = written(*cells)
    assert [numbers(line) for line in found] == [
        {name: value for name, value in typed(cell).items() if name != "note"} for cell in cells
    ]
    assert [line["unit"] for line in found] == ["s", "1", "bytes", "1", "s", "bytes/s", "queries/h × SF"]


def test_words_have_no_numbers_and_a_missing_value_is_none() -> None:
    found = written("faster in 8 of 8", Missing("not known"), TableCell(float("nan"), "s"), Missing(""))
    assert [line["text"] for line in found] == ["faster in 8 of 8", "not known", "not known"]
    assert not any(line["value"] or line["low"] or line["high"] for line in found)


def test_every_cell_of_every_table_of_a_report_is_in_the_file_with_its_numbers() -> None:
    plan = lab({"log": ("disk", "memory")}, blocks=6)
    records = trials(plan, {"log=disk": 1000.0, "log=memory": 1500.0}, observed=True)
    for study in (*studies(example(), Shelf(example())), studied(plan, records)):
        found = [numbers(line) for line in lines(formats.get("csv")([study])) if line["unit"]]
        for section in sections(study):
            for table in (*(chart.table for chart in section.charts), *(table for _, table in section.tables)):
                for _, *cells in table.rows:
                    for cell in cells:
                        if isinstance(cell, TableCell) and len(typed(cell)) > 1:
                            wanted = {name: value for name, value in typed(cell).items() if name != "note"}
                            assert wanted in found, (section.title, cell)


def test_every_table_of_a_run_is_in_the_file() -> None:
    found = studies(example(), Shelf(example()))
    rows = lines(formats.get("csv")(found))
    assert tuple(rows[0]) == HEAD
    assert (
        *("report", "section", "table", "row", "column", "text", "value", "unit"),
        *("low", "high", "confidence", "t_s"),
    ) == HEAD
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
    assert doubts[0] == "Derived: not comparable." and any("97% busy" in text for text in doubts)


def test_a_label_is_no_formula_of_a_spreadsheet() -> None:
    trial = record(replace(DISK, label='=HYPERLINK("http://x")'))
    rows = lines(formats.get("csv")(studies([trial], Shelf())))
    cells = [cell for row in rows for cell in row.values()]
    assert not [cell for cell in cells if cell.startswith(("=", "@"))]
    assert any(cell.startswith("'=HYPERLINK") for cell in cells)


class TwoSeconds(Shelf):
    """Evidence of a trial of 2.5 s whose second 1 had only failures."""

    def seconds(self, id: str) -> dict[str, list[float]]:
        nan = math.nan
        return {
            "t_s": [0.0, 1.0, 2.0],
            "transactions": [100.0, 0.0, 60.0],
            "errors": [0.0, 7.0, 1.0],
            "response_mean_s": [0.0123456789, nan, 0.02],
            "response_p99_s": [0.5, nan, 0.6],
        }


def test_every_second_of_a_trial_has_a_line_for_each_known_value() -> None:
    trial = replace(suspect(record()), elapsed_s=2.5)
    rows = lines(formats.get("csv", TwoSeconds([trial]))(studies([trial], TwoSeconds([trial]))))
    found = [row for row in rows if row["section"] == "Every second"]
    assert {(row["table"], row["row"], row["text"]) for row in found} == {
        ("log on disk, 8 clients", trial.id, "flagged")
    }
    values = {(row["column"], float(row["t_s"])): (float(row["value"]), row["unit"]) for row in found}
    assert len(values) == len(found)
    assert values == {
        ("throughput", 0.0): (100.0, "1/s"),
        ("throughput", 1.0): (0.0, "1/s"),
        ("failed", 0.0): (0.0, "1"),
        ("failed", 1.0): (7.0, "1"),
        ("failed", 2.0): (1.0, "1"),
        ("response_time_mean_s", 0.0): (0.0123456789, "s"),
        ("response_time_mean_s", 2.0): (0.02, "s"),
        ("response_time_p99_s", 0.0): (0.5, "s"),
        ("response_time_p99_s", 2.0): (0.6, "s"),
    }
    assert not any(row["t_s"] for row in rows if row["section"] != "Every second")


def test_every_second_of_all_trials_of_runs_and_labs_is_in_the_file() -> None:
    plan = lab({"log": ("disk", "memory")}, blocks=6)
    records = trials(plan, {"log=disk": 1000.0, "log=memory": 1500.0}, observed=True)
    for study, own in ((studies(example(), Shelf(example()))[0], example()), (studied(plan, records), records)):
        rows = lines(formats.get("csv", Shelf(own))([study]))
        seconds = Counter(row["row"] for row in rows if row["section"] == "Every second" and row["column"] == "failed")
        assert seconds == {one.id: int(one.elapsed_s) for one in own}


def test_the_query_of_the_page_returns_a_column_per_metric(tmp_path: Path) -> None:
    (tmp_path / "lab.csv").write_bytes(formats.get("csv", Shelf(example()))(studies(example(), Shelf(example()))))
    page = (Path(__file__).parents[2] / "docs" / "reference" / "report-tables.md").read_text()
    (query,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    found = duckdb.sql(query.replace("lab.csv", str(tmp_path / "lab.csv")))
    assert found.columns == ["trial", "t_s", "failed", "response_time_p50_s", "response_time_p99_s", "throughput"]
    assert len(found) == sum(int(one.elapsed_s) for one in example())
