"""HTML tables are laid out by the types of their cells."""

from __future__ import annotations

from ironbench.report.cell import ABSENT, TableCell
from ironbench.report.charts.base import Table
from ironbench.report.markup import cell_class, environment, figure_columns


def test_columns_with_values_are_figures_and_the_first_column_never_is() -> None:
    rows = ((TableCell(8.0), TableCell(1.0, "s"), "faster", ABSENT), (TableCell(9.0), ABSENT, "slower", ABSENT))
    assert figure_columns(Table(("clients", "time", "verdict", "p"), rows)) == (False, True, False, True)


def test_a_table_without_rows_is_rendered_with_its_head() -> None:
    made = environment("ironbench.report").globals["parts"].table(Table(("clients", "time"), ()))
    assert made.count("<th ") == 2


def test_values_and_single_words_are_not_broken_and_long_words_may_be_broken_anywhere() -> None:
    assert cell_class(TableCell(1.0, "s", low=0.5, high=2.0), True) == "figure word"
    assert cell_class("order_line", False) == "word"
    assert cell_class("two words", True) == "figure words"
    assert cell_class("/var/lib/postgresql/18/main/pg_wal/archive_status", False) == ""
