"""Formats tables as text in columns, and bars as characters. The output contains no colours or control sequences, so it
can be logged or piped."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from ironbench.report.cell import Content, TableCell, cell_text
from ironbench.report.charts.base import Depth, Table
from ironbench.report.page import Answer, Section
from ironbench.words import clean as clean
from ironbench.words import clean_lines as clean_lines
from ironbench.words import counted

_NARROW = re.compile("[\x00-\u02ff\u2000-\u206f]*")
"""Matches text in which each character takes one column. These are the characters below U+0300, where combining
characters start, and typographic spaces and dashes."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def table(content: Table, indent: str = "  ") -> str:
    """Formats a table. The first column is aligned to the left, all others to the right."""
    rows = [tuple(clean(cell) for cell in row) for row in (content.head, *content.texts)]
    widths = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
    lines = [indent + _line(row, widths) for row in rows]
    lines.insert(1, indent + "─" * (sum(widths) + 2 * (len(widths) - 1)))
    return "\n".join(line.rstrip() for line in lines)


def answer(content: Answer, width: int = 100) -> str:
    """Formats an answer, with lines of at most `width` characters. Each point is a bullet, with its caveat below it."""
    lines = [folded(content.decision.sentence, width)]
    for point in content.points:
        lines.append(folded(" ".join(filter(None, (point.name, point.text))), width, "  - ", "    "))
        lines += [folded(point.caveat, width, "    ", "    ")] if point.caveat else []
    lines += [folded(text, width) for text in (content.limit, *content.caveats) if text]
    return "\n".join(lines)


def section(part: Section, brief: bool = False, width: int | None = None) -> list[str]:
    """Formats a section as blocks of text. A chart is shown as its table. `brief`: whether to leave out charts if the
    section has other tables. `width`: width of the terminal in characters."""
    tables = part.tables_at(Depth.EVERYWHERE)
    blocks = []
    for chart in [] if brief and tables else part.charts_at(Depth.EVERYWHERE):
        title = chart.title if part.self_titled else f"{part.title}: {chart.title}"
        blocks.append(f"{clean(title)}\n{table(chart.table)}")
    blocks += [f"{part.bars.title}\n{bars(part.bars.rows)}"] if part.bars else []
    blocks += [folded(text) for text in part.sentences]
    for name, content in tables:
        title = clean(f"{part.title}: {name}" if name else part.title)
        if content.counted:
            more = counted(len(content.rows), "more fact")
            blocks.append(f"The HTML and JSON reports list {more}.")
        elif content.ranks:
            blocks.append(f"{title}\n{fitted(columns(content), width)[0]}")
        else:
            rows = facts(Table((), (content.head, *content.rows))) if content.words else table(content)
            blocks.append(f"{title}\n{rows}")
    return blocks


def folded(text: str, width: int = 100, first: str = "", rest: str = "") -> str:
    return textwrap.fill(
        clean(text), width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False, break_long_words=False
    )


def bullets(title: str, rows: Sequence[str]) -> str:
    """Formats a heading and a line for each row. Returns an empty text without rows."""
    return "\n".join([title, *(f"  - {clean(row)}" for row in rows)]) if rows else ""


def facts(content: Table, indent: str = "  ") -> str:
    """Formats a table of words. All columns are aligned to the left."""
    rows = [tuple(clean(cell) for cell in row) for row in content.texts]
    widths = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        (indent + "  ".join(left(cell, width) for cell, width in zip(row, widths, strict=True))).rstrip()
        for row in rows
    )


def bars(rows: Sequence[tuple[str, TableCell]], width: int = 40, indent: str = "  ") -> str:
    """Formats bars as `name ██████▌ value`. The longest bar has `width` characters."""
    most = max((cell.value or 0.0 for _, cell in rows), default=0.0)
    names = [clean(name) for name, _ in rows]
    longest = max(map(width_of, names), default=0)
    return "\n".join(
        f"{indent}{left(name, longest)} "
        f"{_bar((cell.value or 0.0) / most if most > 0 else 0.0, width)} {cell_text(cell)}"
        for name, (_, cell) in zip(names, rows, strict=True)
    )


def _bar(share: float, width: int) -> str:
    whole, rest = divmod(round(share * width * 8), 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def _line(row: tuple[str, ...], widths: Sequence[int]) -> str:
    first = left(row[0], widths[0])
    others = (" " * (width - width_of(cell)) + cell for cell, width in zip(row[1:], widths[1:], strict=True))
    return "  ".join((first, *others))


def left(text: str, width: int) -> str:
    """Appends spaces to `text`, so that it takes `width` columns."""
    return text + " " * (width - width_of(text))


def width_of(text: str) -> int:
    """Returns the number of columns that a text takes on a terminal. East Asian wide characters take two columns, and
    combining characters take none."""
    if text.isascii() or _NARROW.fullmatch(text):
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


_GAP = "  "
_PROSE = 24
"""Minimum width of a column of sentences. If the other columns leave less room, sentences are written on separate
lines."""


@dataclass(frozen=True, slots=True)
class Column:
    head: str
    cells: tuple[Content, ...]
    right: bool = False
    rank: int = 0
    """A narrow terminal leaves out the column with the highest rank first, and never leaves out a column with rank
    0."""
    prose: bool = False
    """Whether the column contains sentences. Long sentences are wrapped. Only the last column may contain sentences."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The head and the cells, formatted for people."""
        return (self.head, *map(cell_text, self.cells))

    @property
    def width(self) -> int:
        return max(map(width_of, self.lines))


def columns(content: Table) -> list[Column]:
    """Converts a table to columns. Columns that contain a number are aligned to the right."""
    found = []
    for place, (head, rank) in enumerate(zip(content.head, content.ranks, strict=True)):
        cells = tuple(row[place] for row in content.rows)
        numbers = any(isinstance(cell, TableCell) for cell in cells)
        last = place == len(content.head) - 1
        prose = last and not rank and any(isinstance(cell, str) and " " in cell for cell in cells)
        found.append(Column(head, cells, numbers, rank, prose))
    return found


def fitted(columns: Sequence[Column], width: int | None) -> tuple[str, tuple[str, ...]]:
    """Formats a table with lines of at most `width` characters, or of any length if `width` is None. Returns the text,
    and the heads of the columns that were left out."""
    kept = [_cleaned(column) for column in columns]
    out: list[str] = []
    while width is not None and _needed(kept) > width and any(column.rank for column in kept):
        least = max(kept, key=lambda column: column.rank)
        kept.remove(least)
        out.append(least.head)
    rows = zip(*(column.lines if column.prose else _filled(column) for column in kept), strict=True)
    lines = [_fitted_line(row, kept[-1].prose, width) for row in rows]
    return "\n".join(lines), tuple(out)


def _filled(column: Column) -> list[str]:
    """Pads the head and all cells to the same width. Each cell's width is computed only once, because a column may have
    ten thousand cells."""
    cells = column.lines
    widths = list(map(width_of, cells))
    widest = max(widths)
    gaps = [" " * (widest - width) for width in widths]
    if column.right:
        return [gap + cell for gap, cell in zip(gaps, cells, strict=True)]
    return [cell + gap for gap, cell in zip(gaps, cells, strict=True)]


def _cleaned(column: Column) -> Column:
    head, *cells = map(clean, column.lines)
    return Column(head, tuple(cells), column.right, column.rank, column.prose)


def _needed(columns: Sequence[Column]) -> int:
    return sum(0 if column.prose else column.width for column in columns) + len(_GAP) * (len(columns) - 1)


def _fitted_line(row: Sequence[str], prose: bool, width: int | None) -> str:
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
