"""The Jinja environment of the HTML templates. Also chooses the CSS classes that determine how tables are laid out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from ironbench.report import assets, theme
from ironbench.report.cell import shown
from ironbench.report.charts.base import Table
from ironbench.report.page import CAVEATS
from ironbench.words import CODE, clean_lines

if TYPE_CHECKING:
    from jinja2 import Environment

_LONGEST_WORD = 16
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
        "shown": shown,
        "table_class": table_class,
        "cell_class": cell_class,
        "themes": {"light": theme.LIGHT, "dark": theme.DARK},
    }
    made.globals["parts"] = made.get_template("parts.html").module
    return made


def cell_class(text: str) -> str:
    """Returns the CSS class of a cell, which determines where its text may be broken. A text of one word is not broken.
    A text with a very long word, such as a path, may be broken anywhere."""
    if any(len(word) > _LONGEST_WORD for word in text.split(" ")):
        return ""
    return "words" if " " in text else "word"


def table_class(content: Table, numbers: bool) -> str:
    """Returns the CSS classes of a table. The classes determine how the table's columns are aligned, and below which
    width of the container each row becomes a stack of cells."""
    figures = numbers or content.numbers
    columns = zip(content.head, *content.texts, strict=True)
    # Width of the table in rem. A column of figures is as wide as its longest cell, and a column of words as its
    # longest word.
    needed = sum(_widest(place, column, figures) * _LETTER + _PADDING for place, column in enumerate(columns))
    step = next((step for step in assets.STEPS if step >= needed), assets.STEPS[-1])
    return " ".join(
        [*(["numbers"] if figures else []), *(["wrap"] if needed > assets.STEPS[-1] else []), f"below{step}"]
    )


def _widest(place: int, column: Sequence[str], figures: bool) -> int:
    cells = column[1:] if place and figures else [word for cell in column[1:] for word in cell.split(" ")]
    return max((len(text) for text in (*column[0].split(" "), *cells)), default=0)
