"""Formats of `ironbench report`, found by their modules' names: each has a doc line, `render` and `render_page`.

`_NEED_FILE` has those that are not for a terminal, `_SUFFIXES` how names of files end where the module's name is not
the only ending. Both are here: to ask the modules is to import them all.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from types import ModuleType

from ironbench.errors import InputError, nearest
from ironbench.report.page import Page
from ironbench.study.study import Study

Render = Callable[[Sequence[Study]], bytes]
_NEED_FILE = {"html", "png", "svg"}
_SUFFIXES = {"html": ("html", "htm"), "md": ("md", "markdown"), "text": ("txt", "text")}
"""The usual one first."""


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def get(name: str) -> Render:
    """InputError with the nearest names for an unknown one."""
    render: Render = _module(name).render
    return render


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


def of_page(name: str) -> Callable[[Page], bytes]:
    """What writes a page that is no report. InputError, as `get`."""
    render: Callable[[Page], bytes] = _module(name).render_page
    return render


def _require(name: str) -> None:
    if name not in names():
        raise InputError(f"--format {name}", "no such format", nearest(name, names()))


def _module(name: str) -> ModuleType:
    _require(name)
    return importlib.import_module(f"{__name__}.{name}")
