"""Formats of `ironbench report`, found by their modules' names: each has a doc line and `render`.

`_NEED_FILE` has those that are not for a terminal, `_SUFFIXES` how names of files end where the module's name is not
the only ending. Both are here: to ask the modules is to import them all.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ironbench.errors import InputError, nearest
from ironbench.report.page import Page, Section

if TYPE_CHECKING:
    from ironbench.study.study import Study

Render = Callable[[Sequence[Page], Section | None], bytes]
"""Writes pages, and what goes before many."""
_NEED_FILE = {"html", "png", "svg"}
_SUFFIXES = {"html": ("html", "htm"), "md": ("md", "markdown"), "text": ("txt", "text")}
"""The usual one first."""


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def get(name: str) -> Callable[[Sequence[Study]], bytes]:
    """Writes reports of studies. InputError with the nearest names for an unknown one."""
    render = _render(name)

    def written(studies: Sequence[Study]) -> bytes:
        from ironbench.report.document import contents, report

        return render([report(study) for study in studies], contents(studies))

    return written


def of_page(name: str) -> Callable[[Page], bytes]:
    """Writes a page that is no report. InputError, as `get`."""
    render = _render(name)
    return lambda page: render([page], None)


def needs_file(name: str) -> bool:
    """InputError, as `get`."""
    _require(name)
    return name in _NEED_FILE


def suffixes(name: str) -> tuple[str, ...]:
    """InputError, as `get`."""
    _require(name)
    return _SUFFIXES.get(name, (name,))


def of_suffix(suffix: str) -> str:
    """The format of files whose names end so; "" where there is none."""
    return next((name for name in names() if suffix in suffixes(name)), "")


def _require(name: str) -> None:
    if name not in names():
        raise InputError(f"--format {name}", "no such format", nearest(name, names()))


def _render(name: str) -> Render:
    _require(name)
    render: Render = importlib.import_module(f"{__name__}.{name}").render
    return render
