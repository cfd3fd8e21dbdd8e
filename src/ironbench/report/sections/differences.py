"""Differences between systems that are not findings: further metrics, sizing ratios, and recorded facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ironbench.report import wording
from ironbench.report.cell import ABSENT, Content, Missing, TableCell
from ironbench.report.charts.base import Table
from ironbench.report.facts import difference_rows, fact, fact_name
from ironbench.report.finding_tables import metric_tables
from ironbench.report.numbers import NOT_KNOWN
from ironbench.report.page import Section, by_value, with_rows
from ironbench.report.wording.terms import label
from ironbench.study.balance import DATA_TO_CACHE, DATA_TO_MEMORY
from ironbench.study.differences import most_relevant

if TYPE_CHECKING:
    from ironbench.study.balance import SizingRatio
    from ironbench.study.study import CellResults, Study, SubjectResults

PLACE = 2200


def sections(study: Study) -> Iterator[Section]:
    yield Section("others", "Other metrics", _LEAD, tables=tuple(metric_tables(study.others)))
    yield Section("balance", "Sizing ratios", _LEAD_BALANCE, tables=with_rows(balance(study)))
    if study.lab:
        lead = (
            "The table lists all recorded facts that differ between configurations: the factors of the lab, and "
            "everything that changed with them."
        )
        yield Section("differences", "Differences between configurations", lead, tables=with_rows(between_cells(study)))
    else:
        yield Section("differences", "Differences between systems", _lead(study), tables=tuple(between_parts(study)))


_LEAD = (
    "These are other metrics of the same trials. They carry no verdict, because the lab decides by one metric "
    "that was chosen in advance, and among many other metrics some differ by chance."
)


_LEAD_BALANCE = (
    "Results from a small system apply to a large system if the two have similar sizing ratios. Compare these "
    "ratios, not the absolute sizes, with the ratios of your system."
)
_SIDE_BY_SIDE = 4
"""Maximum number of configurations for a table with a column for each configuration."""


def balance(study: Study) -> Table:
    """Returns a row for each sizing ratio and a column for each system. For a lab with many configurations, returns a
    row for each different value instead. Such a row names the configurations with this value."""
    sides: Sequence[SubjectResults | CellResults] = [*study.parts, *(cell for cell in study.cells if cell.balance)]
    kinds = dict.fromkeys((entry.name, entry.machine) for side in sides for entry in side.balance)
    names = [name for name, _ in kinds]
    shown: dict[str, list[tuple[str, Content]]] = {}
    for name, machine in kinds:
        found = [next((e for e in side.balance if (e.name, e.machine) == (name, machine)), None) for side in sides]
        those = ", ".join(label(side.configuration) for side, entry in zip(sides, found, strict=True) if entry)
        title = wording.text(name) if names.count(name) == 1 else f"{wording.text(name)} ({those})"
        shown[title] = [(label(side.configuration), ratio_of(entry)) for side, entry in zip(sides, found, strict=True)]
    if study.parts or len(sides) <= _SIDE_BY_SIDE:
        rows = [(name, *(words for _, words in values)) for name, values in shown.items()]
        head = wording.text(study.place) if study.parts else "ratio"
        return Table((head, *(label(side.configuration) for side in sides)), tuple(rows), words=True)
    rows = [(name, value, cells) for name in shown for value, cells in by_value(shown[name])]
    return Table(("ratio", "value", "configurations"), tuple(rows), words=True)


def ratio_of(entry: SizingRatio | None) -> TableCell | Missing:
    if entry is None:
        return ABSENT
    known = wording.text(entry.note) if entry.note else ""
    if entry.value is None:
        words = wording.text(entry.words) if entry.words else NOT_KNOWN
        return Missing(f"{words} ({known})" if known else words)
    return TableCell(
        entry.value, "to 1" if entry.name.code in (DATA_TO_CACHE, DATA_TO_MEMORY) else entry.unit, note=known
    )


REST = "Other differences"


def between_parts(study: Study) -> list[tuple[str, Table]]:
    """Returns a table of the important facts that differ, and a table of all other facts that differ. The first table
    needs no title."""
    shown, rest = most_relevant(study.differences)
    head = ("fact", *(part.name for part in study.parts))
    named = (("", shown), (REST, rest))
    return [
        (name, Table(head, difference_rows(rows), words=True, counted=name == REST)) for name, rows in named if rows
    ]


def between_cells(study: Study) -> Table:
    """Returns a row for each different value of each fact. The row names the configurations with this value."""
    rows = []
    for row in study.differences:
        by_cell: list[tuple[str, Content]] = [
            (label(cell.configuration), fact(row.name, value))
            for cell, value in zip(study.cells, row.values, strict=True)
        ]
        rows += [(f"{row.group}: {fact_name(row.name)}", value, cells) for value, cells in by_value(by_cell)]
    return Table(("fact", "value", "configurations"), tuple(rows), words=True)


def _lead(study: Study) -> str:
    if len(study.parts) < 2:
        return ""
    if not study.differences:
        return "These systems have no recorded differences."
    return "The table lists all recorded facts that differ between the systems."
