"""The Jinja environment of the HTML templates. Also chooses the CSS classes that determine how tables are laid out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from ironbench.report import assets, theme
from ironbench.report.cell import Content, Missing, TableCell, cell_text
from ironbench.report.charts.base import Table
from ironbench.report.page import CAVEATS
from ironbench.words import CODE, clean_lines

if TYPE_CHECKING:
    from jinja2 import Environment

_LONGEST_WORD = 40
"""A word with at most this number of characters always fits into one line of a cell."""
_LETTER, _PADDING = 0.5, 0.95
"""Mean width of a character and width of the gap between columns, in rem, at the font size of tables."""


@cache
def environment(*packages: str) -> Environment:
    """Returns an environment with the templates of these packages. If several packages have a template with the same
    name, the first of them is used.

    Values are escaped, and control characters are removed. A template that uses an undefined name fails.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: clean_lines(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters["code_pieces"] = CODE.split
    made.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    made.globals |= {
        "CAVEATS": CAVEATS,
        "shown": cell_text,
        "table_class": table_class,
        "cell_class": cell_class,
        "figure_columns": figure_columns,
        "themes": {"light": theme.LIGHT, "dark": theme.DARK},
    }
    made.globals["parts"] = made.get_template("parts.html").module
    return made


def figure_columns(content: Table) -> tuple[bool, ...]:
    """Returns for each column whether it contains figures, which are aligned to the right."""
    return (False, *(_has_figures([row[place] for row in content.rows]) for place in range(1, len(content.head))))


def _has_figures(cells: Sequence[Content]) -> bool:
    return any(isinstance(cell, TableCell) for cell in cells) or all(isinstance(cell, Missing) for cell in cells)


def _words(cell: str | Missing) -> list[str]:
    return (cell if isinstance(cell, str) else cell.words).split(" ")


def cell_class(cell: Content, figure: bool) -> str:
    """Returns the CSS classes of a cell, which determine its alignment and where its text may be broken. Values and
    texts of one word are not broken. A text with a very long word, such as a path, may be broken anywhere. `figure`:
    whether the column contains figures."""
    aligned = ["figure"] if figure else []
    if isinstance(cell, TableCell):
        return " ".join([*aligned, "word"])
    words = _words(cell)
    if any(len(word) > _LONGEST_WORD for word in words):
        return " ".join(aligned)
    return " ".join([*aligned, "words" if len(words) > 1 else "word"])


def table_class(content: Table) -> str:
    """Returns the CSS classes of a table. The classes determine whether its values may be broken, and below which width
    of the container each row becomes a stack of cells."""
    columns = zip(content.head, *content.rows, strict=True)
    needed = sum(_width(column) * _LETTER + _PADDING for column in columns)
    step = next((step for step in assets.STEPS if step >= needed), assets.STEPS[-1])
    return " ".join([*(["wrap"] if needed > assets.STEPS[-1] else []), f"below{step}"])


def _width(column: tuple[str, *tuple[Content, ...]]) -> int:
    """Returns the width in characters that a column needs: the length of its longest value or word."""
    head, *cells = column
    values = [cell_text(cell) for cell in cells if isinstance(cell, TableCell)]
    words = [word for cell in cells if not isinstance(cell, TableCell) for word in _words(cell)]
    return max(map(len, (*head.split(" "), *values, *words)))
