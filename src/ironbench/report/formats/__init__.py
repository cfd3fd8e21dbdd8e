"""Output formats of `ironbench report`. Each module of this package defines a format with the same name. The module
contains a docstring that describes the format, and a function `render`.

Facts about formats, such as `_NEED_FILE` and `_SUFFIXES`, are defined here and not in the modules. Reading them from
the modules would import all formats.
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
"""Type of functions that write pages. The second argument is the table of contents, or None if there is none."""
_NEED_FILE = {"html", "png", "pprof", "svg"}
_NEED_PROFILE = {"folded", "pprof"}
"""Formats that contain only profiles."""
_SUFFIXES = {
    "html": ("html", "htm"),
    "md": ("md", "markdown"),
    "pprof": ("pb.gz", "gz", "pprof"),
    "text": ("txt", "text"),
}
"""File suffixes of each format, with the usual one first. Other formats have their name as the only suffix."""


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def get(name: str, archive: Archive = EMPTY) -> Callable[[Sequence[Study]], bytes]:
    """Returns a function that writes reports about studies in this format. If there is no such format, raises an
    InputError that suggests a similar name.

    `archive`: the stored data of the trials. Some formats contain the values of every second, which are read from it.
    """
    render = _render(name)

    def written(studies: Sequence[Study]) -> bytes:
        from ironbench.report.document import contents, report

        return render([report(study, archive) for study in studies], contents(studies))

    return written


def of_pages(name: str) -> Callable[[Sequence[Page]], bytes]:
    """Returns a function that writes pages. Raises InputError as `get` does."""
    render = _render(name)
    return lambda pages: render(pages, None)


def of_page(name: str) -> Callable[[Page], bytes]:
    """Returns a function that writes a single page. Raises InputError as `get` does."""
    render = of_pages(name)
    return lambda page: render([page])


def needs_file(name: str) -> bool:
    """Returns whether the format needs a file, because a terminal cannot show it. Raises InputError as `get` does."""
    _require(name)
    return name in _NEED_FILE


def of_any_page() -> list[str]:
    """Returns the names of the formats that can write any page."""
    return [name for name in names() if name not in _NEED_PROFILE]


def suffixes(name: str) -> tuple[str, ...]:
    """Returns the file suffixes of a format. Raises InputError as `get` does."""
    _require(name)
    return _SUFFIXES.get(name, (name,))


def of_suffix(suffix: str) -> str:
    """Returns the name of the format for a file suffix. Returns an empty text if there is no such format."""
    return next((name for name in names() if suffix in suffixes(name)), "")


def _require(name: str) -> None:
    if name not in names():
        raise InputError(f"--format {name}", "no such format", nearest(name, names()))


def _render(name: str) -> Render:
    _require(name)
    render: Render = importlib.import_module(f"{__name__}.{name}").render
    return render
