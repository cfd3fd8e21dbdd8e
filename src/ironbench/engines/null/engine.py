"""The engine `null`, which answers statements without doing any work, in order to measure the benchmark harness."""

from __future__ import annotations

import re
from typing import Any

from ironbench.engines import ideal
from ironbench.engines.base import Engine, SessionDefaults, Traits
from ironbench.errors import InputError, nearest, written
from ironbench.model.secrets import Secrets
from ironbench.model.session import Row
from ironbench.model.system import Layout, System

_UNITS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|ms|s)")
_LONGEST_NS = 60_000_000_000


class NullEngine(Engine):
    name = "null"
    traits = Traits(
        doc="a simulated database that answers immediately, or after the time in `--set "
        "service=50us`; for measuring ironbench itself",
        abilities=frozenset({"scripts", "transactions", "copy", "population"}),
    )

    def validated(self, system: System, clients: int) -> tuple[System, Secrets]:
        """Accepts only the setting `service`, which is the duration of every statement."""
        for name, value in system.settings.items():
            if name != "service":
                raise InputError(
                    written("system.set", f"{name}={value}"),
                    "the engine `null` has no such setting",
                    nearest(name, ["service"]),
                )
        _service_ns(system)
        ideal.refuse(
            system,
            dict.fromkeys(
                ("log", "data", "temp", "client"), "the engine `null` does no work that could be made faster"
            ),
        )
        if system.dsn is not None:
            raise InputError(
                written("system.dsn"), "the engine `null` is not a server", "remove it, or use a server engine"
            )
        if system.layout != Layout():
            raise InputError(
                f"{written('layout.data')}, {written('layout.temp')}, {written('layout.log')}",
                "the engine `null` stores no data",
                "remove them",
            )
        if system.memory_bytes is not None:
            raise InputError(written("system.memory"), "the engine `null` has no cache", "remove it")
        if system.memory_total_bytes is not None or system.parallelism is not None:
            raise InputError(
                f"{written('limits.memory_total')}, {written('system.parallelism')}",
                "the engine `null` has nothing to limit",
                "remove them",
            )
        return system, Secrets()

    def identity(self, system: System, secrets: Secrets) -> dict[str, str]:
        from ironbench import _core

        return {"version": _core.VERSION}

    def start(self, system: System, secrets: Secrets, clients: int) -> NullSession:
        return NullSession(_service_ns(system))


class NullSession(SessionDefaults):
    """A session that accepts every statement and stores nothing."""

    engine = "null"

    def __init__(self, service_ns: int) -> None:
        self._service_ns = service_ns

    def query(self, sql: str) -> list[Row]:
        return []

    def copy_in(self, sql: str, data: bytes) -> int:
        return data.count(b"\n")

    def target(self, load_protocol: str = "prepared", io: str = "auto") -> dict[str, Any]:
        return {"kind": "null", "service_ns": self._service_ns}

    def facts(self) -> dict[str, Any]:
        return {"engine": "null", "settings": {"service_ns": str(self._service_ns)}}


def _service_ns(system: System) -> int:
    text = system.settings.get("service", "0ns")
    match = _DURATION.fullmatch(text)
    if match is None:
        raise InputError(
            written("system.set", f"service={text}"),
            "is not a duration",
            "write a number with ns, us, ms or s, for example 50us",
        )
    service_ns = round(float(match.group(1)) * _UNITS_NS[match.group(2)])
    if service_ns > _LONGEST_NS:
        raise InputError(
            written("system.set", f"service={text}"), "is longer than one minute", "choose a shorter duration"
        )
    return service_ns


ENGINE = NullEngine()
