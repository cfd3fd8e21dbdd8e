"""A table for a terminal of any width: cells are never broken, columns that do not fit are left out."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from ironbench.report.plain import clean, width_of

_GAP = "  "
_PROSE = 24
"""Prose is folded into no fewer columns than this; beside longer names it stands on lines of its own."""


@dataclass(frozen=True, slots=True)
class Column:
    head: str
    cells: tuple[str, ...]
    right: bool = False
    rank: int = 0
    """0 is always shown; of the others the highest is left out first."""
    prose: bool = False
    """Sentences, folded where they are too long; only the last column may be."""

    @property
    def width(self) -> int:
        return max(map(width_of, (self.head, *self.cells)))


def fitted(columns: Sequence[Column], width: int | None) -> tuple[str, tuple[str, ...]]:
    """The table in at most `width` columns of the terminal (None: as wide as it gets), and the heads left out."""
    shown = [_cleaned(column) for column in columns]
    out: list[str] = []
    while width is not None and _needed(shown) > width and any(column.rank for column in shown):
        least = max(shown, key=lambda column: column.rank)
        shown.remove(least)
        out.append(least.head)
    rows = zip(*((column.head, *column.cells) if column.prose else _filled(column) for column in shown), strict=True)
    lines = [_line(row, shown[-1].prose, width) for row in rows]
    return "\n".join(lines), tuple(out)


def _filled(column: Column) -> list[str]:
    """Head and cells, all as wide as the widest: each is measured once, for there may be ten thousand."""
    cells = (column.head, *column.cells)
    widths = list(map(width_of, cells))
    widest = max(widths)
    gaps = [" " * (widest - width) for width in widths]
    if column.right:
        return [gap + cell for gap, cell in zip(gaps, cells, strict=True)]
    return [cell + gap for gap, cell in zip(gaps, cells, strict=True)]


def _cleaned(column: Column) -> Column:
    cells = tuple(map(clean, column.cells))
    return Column(clean(column.head), cells, column.right, column.rank, column.prose)


def _needed(columns: Sequence[Column]) -> int:
    return sum(0 if column.prose else column.width for column in columns) + len(_GAP) * (len(columns) - 1)


def _line(row: Sequence[str], prose: bool, width: int | None) -> str:
    line = _GAP.join(row[:-1] if prose else row)
    if not prose:
        return line.rstrip()
    indent = width_of(line) + len(_GAP)
    if width is None:
        return f"{line}{_GAP}{row[-1]}".rstrip()
    if width - indent < _PROSE:
        folded = textwrap.wrap(row[-1], max(_PROSE, width - 4))
        return "\n".join([line.rstrip(), *(f"    {part}" for part in folded)])
    folded = textwrap.wrap(row[-1], width - indent) or [""]
    return (line + _GAP + ("\n" + " " * indent).join(folded)).rstrip()
