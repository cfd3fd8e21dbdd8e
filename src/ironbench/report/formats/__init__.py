"""Formats of `ironbench report`, found by the names of their modules: each has a doc line and a function `render`.

`_NEED_FILE` names the formats that cannot be shown on a terminal, `_SUFFIXES` the file suffixes other than a module's
name. They are kept here because reading them from the modules would import all formats.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ironbench.errors import InputError, nearest
from ironbench.report.page import Page, Section
from ironbench.study.archive import EMPTY, Archive

if TYPE_CHECKING:
    from ironbench.study.study import Study

Render = Callable[[Sequence[Page], Section | None], bytes]
"""A function that writes pages, preceded by a table of contents if there are many."""
_NEED_FILE = {"html", "png", "svg"}
_SUFFIXES = {"html": ("html", "htm"), "md": ("md", "markdown"), "text": ("txt", "text")}
"""File suffixes of a format, the usual one first."""


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def get(name: str, archive: Archive = EMPTY) -> Callable[[Sequence[Study]], bytes]:
    """Returns a function that writes reports of studies. InputError: there is no such format; it names the nearest.

    archive: the evidence of the trials, for formats with the values of every second.
    """
    render = _render(name)

    def written(studies: Sequence[Study]) -> bytes:
        from ironbench.report.document import contents, report

        return render([report(study, archive) for study in studies], contents(studies))

    return written


def of_pages(name: str) -> Callable[[Sequence[Page]], bytes]:
    """Returns a function that writes pages. InputError: as for `get`."""
    render = _render(name)
    return lambda pages: render(pages, None)


def of_page(name: str) -> Callable[[Page], bytes]:
    """Returns a function that writes a page that is not a report of records. InputError: as for `get`."""
    render = of_pages(name)
    return lambda page: render([page])


def needs_file(name: str) -> bool:
    """Whether the format needs a file, because a terminal cannot show it. InputError: as for `get`."""
    _require(name)
    return name in _NEED_FILE


def suffixes(name: str) -> tuple[str, ...]:
    """Returns the file suffixes of a format. InputError: as for `get`."""
    _require(name)
    return _SUFFIXES.get(name, (name,))


def of_suffix(suffix: str) -> str:
    """Returns the format for a file suffix; empty if there is none."""
    return next((name for name in names() if suffix in suffixes(name)), "")


def _require(name: str) -> None:
    if name not in names():
        raise InputError(f"--format {name}", "no such format", nearest(name, names()))


def _render(name: str) -> Render:
    _require(name)
    render: Render = importlib.import_module(f"{__name__}.{name}").render
    return render
