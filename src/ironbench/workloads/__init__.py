"""Workloads. Each package in this folder that defines `WORKLOAD` is a workload. To add a workload, only a package is
needed. If its result is not a throughput, it also needs metrics in the catalogue, and a `Presentation` for reports,
which `_known` in `report/presentation.py` lists.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from functools import cache
from pathlib import Path

from ironbench.errors import InputError, nearest, written
from ironbench.model.own_data import OwnData
from ironbench.model.system import Choice
from ironbench.workloads.base import Dataset, Option, ScriptSource, Workload

__all__ = ["Dataset", "Option", "ScriptSource", "Workload", "compared", "find", "get", "names"]


@cache
def _packages() -> frozenset[str]:
    return frozenset(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)


@cache
def find(name: str) -> Workload | None:
    """Imports and returns the workload with this name. Only this workload is imported, because importing all would slow
    down short commands."""
    package = name.replace("-", "_")
    if package not in _packages():
        return None
    # A package without a WORKLOAD contains tables that several workloads share.
    workload: Workload | None = getattr(importlib.import_module(f"{__name__}.{package}"), "WORKLOAD", None)
    return workload if workload is not None and workload.name == name else None


@cache
def names() -> list[str]:
    return sorted(name for package in _packages() if find(name := package.replace("_", "-")) is not None)


def get(name: str) -> Workload:
    """Returns the workload with this name. Raises InputError that suggests the nearest name."""
    workload = find(name)
    if workload is None:
        tests = [f"{one} --with test={name}" for one in names() if name in _tests(one)]
        hint = f"write {tests[0]}" if tests else nearest(name, names())
        if name.endswith(".capture"):
            hint = f"write capture {written('workload.with', f'file={name}')}"
        raise InputError(f"workload {name}", "there is no such workload", hint)
    return workload


def _tests(name: str) -> tuple[str, ...]:
    """Returns the possible values of a workload's option `test`."""
    workload = find(name)
    return next((one.choices for one in workload.options if one.name == "test"), ()) if workload else ()


def compared(choice: Choice) -> Choice:
    """Returns a form of the choice for comparisons. This form is equal for choices of the same work, even if their
    files have different paths. The form contains digests of scripts and of the user's own data, but only the names of
    other files. The order of scripts does not matter. Options that do not change the work are left out, unless the
    workload is unknown.
    """
    choice = replace(_by_contents(choice), data=_data(choice.data))
    workload = find(choice.workload)
    if workload is None:
        return choice
    incidental = {option.name for option in workload.options if option.incidental}
    files = {option.name for option in workload.options if option.path == "file"}
    kept = {name: text for name, text in choice.options.items() if name not in incidental}
    options = {name: (Path(text).name or text) if name in files else text for name, text in kept.items()}
    return replace(choice, options=options)


def _by_contents(choice: Choice) -> Choice:
    """Replaces scripts with `DIGEST@WEIGHT` in alphabetical order. Leaves scripts unchanged if their digests were not
    recorded."""
    if not choice.scripts or len(choice.digests) != len(choice.scripts):
        return choice
    from ironbench import _core

    weights = [_core.split_weight(text)[1] for text in choice.scripts]
    scripts = [f"{digest}@{weight}" for digest, weight in zip(choice.digests, weights, strict=True)]
    return replace(choice, scripts=tuple(sorted(scripts)), digests=())


def _data(data: OwnData | None) -> OwnData | None:
    """Returns data that contain only the key of their contents. Returns None if the data are not imported."""
    return OwnData(template=data.key) if data is not None and data.imported else None
