"""Formats of `ironbench report`, found by their modules' names: each has a doc line, `render` and `render_page`.

`NEEDS_FILE = True`: it is not for a terminal. `SUFFIXES`: how names of its files end, the usual one first, where none
of them is the module's name alone.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from types import ModuleType

from ironbench.analyse.study import Study
from ironbench.errors import InputError, nearest
from ironbench.report.page import Page

Render = Callable[[Sequence[Study]], bytes]


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def get(name: str) -> Render:
    """InputError with the nearest names for an unknown one."""
    render: Render = _module(name).render
    return render


def needs_file(name: str) -> bool:
    """InputError, as `get`."""
    return getattr(_module(name), "NEEDS_FILE", False)


def suffixes(name: str) -> tuple[str, ...]:
    """InputError, as `get`."""
    return getattr(_module(name), "SUFFIXES", (name,))


def of_suffix(suffix: str) -> str:
    """The format of files whose names end so; "" where there is none."""
    # The name first: to ask all formats is to import all.
    return suffix if suffix in names() else next((name for name in names() if suffix in suffixes(name)), "")


def _module(name: str) -> ModuleType:
    if name not in names():
        raise InputError(f"--format {name}", "no such format", nearest(name, names()))
    return importlib.import_module(f"{__name__}.{name}")


def of_page(name: str) -> Callable[[Page], bytes]:
    """The same for a page that is no report."""
    render: Callable[[Page], bytes] = _module(name).render_page
    return render
