"""The balance sheet: ratios that decide whether a small system stands for a big one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ironbench.analyse.balance import Entry
from ironbench.analyse.study import Measured, Part, Study
from ironbench.report.charts.base import Table
from ironbench.report.numbers import NOT_KNOWN, quantity
from ironbench.report.section import Section, by_value, some

PLACE = 2300


_LEAD = (
    "Ratios decide whether a small system stands for a big one: compare these with the system you have in mind, "
    "not the sizes."
)
_SIDE_BY_SIDE = 4
"""More cells than these do not fit beside each other."""


def sections(study: Study) -> Iterator[Section]:
    yield Section("balance", "Balance sheet", _LEAD, tables=some(balance(study)))


def balance(study: Study) -> Table:
    """A row for each ratio with a column for each part or cell; of many cells a row for each value with those that
    have it."""
    sides: Sequence[Part | Measured] = [*study.parts, *(cell for cell in study.cells if cell.balance)]
    names = dict.fromkeys(entry.name for side in sides for entry in side.balance)
    shown = {
        name: [(side.name, ratio_of(next((e for e in side.balance if e.name == name), None))) for side in sides]
        for name in names
    }
    if study.parts or len(sides) <= _SIDE_BY_SIDE:
        rows = [(name, *(words for _, words in values)) for name, values in shown.items()]
        return Table((study.place if study.parts else "ratio", *(side.name for side in sides)), tuple(rows), words=True)
    rows = [(name, value, cells) for name in names for value, cells in by_value(shown[name])]
    return Table(("ratio", "value", "in"), tuple(rows), words=True)


def ratio_of(entry: Entry | None) -> str:
    """A ratio of the balance sheet in words."""
    if entry is None:
        return "–"
    known = quantity(entry.value, entry.unit) if entry.value is not None else entry.said or NOT_KNOWN
    said = known + (" to 1" if entry.value is not None and entry.name.startswith("data to") else "")
    return f"{said} ({entry.note})" if entry.note else said
