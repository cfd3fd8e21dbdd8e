"""The engine `none`, for workloads that measure the machine or its storage without a database."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ironbench.engines import ideal
from ironbench.engines.base import Engine, SessionDefaults, Traits
from ironbench.errors import FailureError, InputError, written
from ironbench.model.secrets import Secrets
from ironbench.model.session import Row
from ironbench.model.system import Layout, System
from ironbench.paths import expanded


class NoEngine(Engine):
    name = "none"
    traits = Traits(
        doc="no database; for workloads that measure storage, CPU or memory directly",
        abilities=frozenset({"bare machine"}),
    )

    def validated(self, system: System, clients: int) -> tuple[System, Secrets]:
        """Returns a system that has only directories. ironbench neither creates nor claims them, because the workload
        decides how to use them."""
        for name, value in system.settings.items():
            raise InputError(
                written("system.set", f"{name}={value}"), "the engine `none` has no database settings", "remove it"
            )
        ideal.refuse(system, dict.fromkeys(("log", "data", "temp", "client"), "the engine `none` has no database"))
        for option, declared in (
            (written("system.dsn"), system.dsn),
            (written("system.memory"), system.memory_bytes),
            (written("limits.memory_total"), system.memory_total_bytes),
            (written("system.parallelism"), system.parallelism),
        ):
            if declared is not None:
                raise InputError(option, "the engine `none` has no database", "remove it, or choose another workload")
        emulated = system.layout.emulated
        places = {role: path if path in emulated else _directory(role, path) for role, path in _roles(system.layout)}
        return replace(system, layout=system.layout.at(places)), Secrets()

    def identity(self, system: System, secrets: Secrets) -> dict[str, str]:
        from ironbench import _core

        return {"version": _core.VERSION}

    def start(self, system: System, secrets: Secrets, clients: int) -> NoSession:
        return NoSession(system.layout)


class NoSession(SessionDefaults):
    """A session that only reports directories. Observers sample the devices of these directories."""

    engine = "none"

    def __init__(self, layout: Layout) -> None:
        self._directories = {role: path for role, path in _roles(layout) if path is not None}

    def query(self, sql: str) -> list[Row]:
        raise FailureError("engine none", "no database to query")

    def copy_in(self, sql: str, data: bytes) -> int:
        raise FailureError("engine none", "no database to load")

    def target(self, load_protocol: str = "prepared", io: str = "auto") -> dict[str, Any]:
        return {"kind": "none"}

    def facts(self) -> dict[str, Any]:
        return {"engine": "none", "settings": {}}

    def directories(self) -> dict[str, str]:
        return dict(self._directories)


def _roles(layout: Layout) -> tuple[tuple[str, str | None], ...]:
    return ("data", layout.data), ("temp", layout.temp), ("log", layout.log)


def _directory(role: str, path: str | None) -> str | None:
    """Returns the absolute path of a directory. Raises InputError if it does not exist. With a mistyped mount point,
    another disk would be measured otherwise."""
    if path is None:
        return None
    place = expanded(path).absolute()
    if not place.is_dir():
        cause = "is not a directory" if place.exists() else "no such directory"
        raise InputError(
            f"{role} directory {place}", cause, "give the path of an existing directory on the device to measure"
        )
    return str(place)


ENGINE = NoEngine()
