"""Named work. Each package in here with a `WORKLOAD` is found by scanning, so adding one touches one folder."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from ironbench.errors import InputError, nearest
from ironbench.workloads.base import Dataset, Option, ScriptSource, Workload

__all__ = ["Dataset", "Option", "ScriptSource", "Workload", "get", "names"]


@cache
def _known() -> dict[str, Workload]:
    packages = (found.name for found in pkgutil.iter_modules(__path__) if found.ispkg)
    modules = [importlib.import_module(f"{__name__}.{package}") for package in packages]
    # A package without one holds tables that several workloads share.
    workloads: list[Workload] = [module.WORKLOAD for module in modules if hasattr(module, "WORKLOAD")]
    return {workload.name: workload for workload in workloads}


def names() -> list[str]:
    return sorted(_known())


def get(name: str) -> Workload:
    """The workload of that name. InputError names the nearest."""
    known = _known()
    if name not in known:
        raise InputError(f"workload {name}", "there is no such workload", nearest(name, list(known)))
    return known[name]
