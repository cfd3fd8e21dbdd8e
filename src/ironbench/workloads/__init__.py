"""Named work. Each package in here with a `WORKLOAD` is found by scanning, so adding one touches one folder.

One whose result is no throughput also needs metrics in the catalogue and, for reports and comparisons, a module in
`report` whose `Presentation` stands in `_known` of `report/presentation.py`.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from functools import cache
from pathlib import Path

from ironbench.errors import InputError, nearest
from ironbench.model.own_data import OwnData
from ironbench.model.system import Choice
from ironbench.workloads.base import Dataset, Option, ScriptSource, Workload

__all__ = ["Dataset", "Option", "ScriptSource", "Workload", "compared", "find", "get", "names"]


@cache
def _packages() -> frozenset[str]:
    return frozenset(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)


@cache
def find(name: str) -> Workload | None:
    """The workload of that name, alone: importing all of them takes longer than many an answer."""
    package = name.replace("-", "_")
    if package not in _packages():
        return None
    # A package without one holds tables that several workloads share.
    workload: Workload | None = getattr(importlib.import_module(f"{__name__}.{package}"), "WORKLOAD", None)
    return workload if workload is not None and workload.name == name else None


@cache
def names() -> list[str]:
    return sorted(name for package in _packages() if find(name := package.replace("_", "-")) is not None)


def get(name: str) -> Workload:
    """The workload of that name. InputError names the nearest."""
    workload = find(name)
    if workload is None:
        raise InputError(f"workload {name}", "there is no such workload", nearest(name, names()))
    return workload


def compared(choice: Choice) -> Choice:
    """Returns the choice in the form that is equal for equal work, wherever its files are.

    Scripts and the user's own data count by their contents, scripts in any order. Other files count by their names, and
    options that leave the work as it is do not count. A choice whose workload is unknown keeps its options.
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
    """With its scripts as `DIGEST@WEIGHT` in alphabetical order; unchanged where their digests are not recorded."""
    if not choice.scripts or len(choice.digests) != len(choice.scripts):
        return choice
    from ironbench import _core

    weights = [_core.split_weight(text)[1] for text in choice.scripts]
    scripts = [f"{digest}@{weight}" for digest, weight in zip(choice.digests, weights, strict=True)]
    return replace(choice, scripts=tuple(sorted(scripts)), digests=())


def _data(data: OwnData | None) -> OwnData | None:
    """The user's own data by the key of their contents."""
    return OwnData(template=data.key) if data is not None and data.imported else None
