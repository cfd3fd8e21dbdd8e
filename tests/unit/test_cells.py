"""Table cells: their text, their values for programs, and their drawing in charts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbench.report.cell import ABSENT, EMPTY, UNKNOWN, Content, Missing, TableCell, cell_text, typed
from ironbench.report.charts.base import Table, data, each_line, each_row, each_value
from ironbench.words import THIN

TABLE = Table(
    ("clients", "disk", "memory"),
    (
        (TableCell(1, "count"), TableCell(530.0, "1/s", 500.0, 560.0, note="2% failed"), TableCell(1600.0, "1/s")),
        (TableCell(2000, "count"), ABSENT, TableCell(7200.0, "1/s")),
    ),
)


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("faster", "faster"),
        (Missing("no interval"), "no interval"),
        (ABSENT, "–"),
        (EMPTY, ""),
        (UNKNOWN, "not known"),
        (TableCell(), "not known"),
        (TableCell(math.nan, "s"), "not known"),
        (TableCell(0.0123, "s"), "12.3 ms"),
        (TableCell(0.0123, "s", 0.0009, 0.014), "12.3 ms (0.900 to 14.0 ms)"),
        (TableCell(None, "ratio", 0.98765, 1.01234), "0.988 to 1.012"),
        (TableCell(None, "ratio", 1.0894, 1.1312), "1.09 to 1.13"),
        (TableCell(None, "ratio", 1.0042, 1.1312), "1.004 to 1.131"),
        (TableCell(None, "ratio", 0.6994, 1.1506), "0.699 to 1.151"),
        (TableCell(None, "ratio", 7.1702, 10.118), "7.17 to 10.12"),
        (TableCell(None, "ratio", 0.00619, 0.12345), "0.0062 to 0.1235"),
        (TableCell(None, "ratio", 1.5, 1.7, note="97.5%"), "1.50 to 1.70 (97.5%)"),
        (TableCell(1.004, "ratio"), "1.004x"),
        (TableCell(2500.0, "1/s", 2000.0, 3000.0, note="2% failed"), "2,500/s (2,000 to 3,000/s, 2% failed)"),
        (TableCell(36.0, "1", 22.0, math.inf), "36.0 (22.0 to ∞)"),
        (TableCell(0.000362, "s", signed=True), "+362 µs"),
        (TableCell(-0.00235, "s", signed=True), "−2.35 ms"),
        (TableCell(7000, "count", note="1 dropped"), "7,000 (1 dropped)"),
        (TableCell(1234.56e6, "MB/s", bare=True), "1,234.6"),
        (TableCell(1500.0, "score", 1450.0, 1560.0, estimate=True), "≈1,500 (1,450 to 1,560)"),
        (TableCell(0.0004, "p"), "< 0.001"),
    ],
)
def test_a_cell_is_written_with_its_unit_range_and_words(cell: Content, text: str) -> None:
    assert cell_text(cell).replace(THIN, " ") == text


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["s", "memory", "share", "times", "rate"]))
def test_programs_get_the_value_as_it_is(value: float, unit: str) -> None:
    assert typed(TableCell(value, unit))["value"] == value


def test_programs_get_base_units_and_the_reason_of_a_missing_value() -> None:
    assert typed(TableCell(0.5, "share", 0.4, 0.6, 0.95)) == {
        **{"value": 0.5, "unit": "1", "low": 0.4, "high": 0.6},
        "confidence": 0.95,
    }
    assert typed(TableCell(1.0, "MB/s"))["unit"] == "bytes/s" and typed(TableCell(1.0, "memory"))["unit"] == "bytes"
    assert (typed(ABSENT), typed(EMPTY), typed("faster")) == (None, None, "faster")
    assert typed(Missing("no interval")) == {"missing": "no interval"}


def test_a_chart_draws_the_cells_of_its_table_in_the_unit_of_its_axis() -> None:
    drawn = data(TABLE, "clients", "system", 10.0)
    assert [(row["clients"], row["system"], row["value"], row["low"], row["high"]) for row in drawn] == [
        (1, "disk", 53.0, 50.0, 56.0),
        (1, "memory", 160.0, 160.0, 160.0),
        (2000, "memory", 720.0, 720.0, 720.0),
    ]
    assert drawn[1]["text"] == "1,600/s"


def test_a_chart_is_told_by_its_table() -> None:
    words = [told.replace(THIN, " ") for told in (each_value(TABLE), each_row(TABLE, ("memory",)))]
    assert words == [
        "1, disk: 530/s (500 to 560/s, 2% failed); 1, memory: 1,600/s; 2,000, memory: 7,200/s",
        "1: memory 1,600/s; 2,000: memory 7,200/s",
    ]
    assert each_line(TABLE, "clients").replace(THIN, " ") == (
        "disk: 530/s with 1 clients; memory: 1,600/s with 1 to 7,200/s with 2,000 clients"
    )
