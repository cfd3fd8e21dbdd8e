"""Formats of `ironbench report`, found by their modules' names: each has a doc line and `render`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from types import ModuleType

from ironbench.analyse.study import Study
from ironbench.errors import InputError, nearest

Render = Callable[[Sequence[Study]], bytes]


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def get(name: str) -> Render:
    """InputError with the nearest names for an unknown one."""
    render: Render = _module(name).render
    return render


def _module(name: str) -> ModuleType:
    if name not in names():
        raise InputError(f"--format {name}", "no such format", nearest(name, names()))
    return importlib.import_module(f"{__name__}.{name}")
