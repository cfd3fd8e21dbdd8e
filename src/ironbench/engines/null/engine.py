"""The engine that is none: it answers at once and measures the harness."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ironbench.engines import ideal
from ironbench.engines.base import Engine, Traits
from ironbench.errors import FailureError, InputError, nearest
from ironbench.model.secrets import Secrets
from ironbench.model.session import Line, Row
from ironbench.model.system import Layout, System

_UNITS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|ms|s)")
_LONGEST_NS = 60_000_000_000


class NullEngine(Engine):
    name = "null"
    traits = Traits(
        doc="answers at once, or after `--set service=50us`: measures ironbench itself",
        abilities=frozenset({"scripts", "copy"}),
    )

    def validated(self, system: System, clients: int) -> tuple[System, Secrets]:
        """Knows one setting, `service`: how long every statement takes."""
        for name, value in system.settings.items():
            if name != "service":
                raise InputError(
                    f"--set {name}={value}", "the null engine has no such setting", nearest(name, ["service"])
                )
        _service_ns(system)
        ideal.refuse(system, dict.fromkeys(("log", "data", "temp", "client"), "the null engine costs nothing already"))
        if system.dsn is not None:
            raise InputError(
                "--dsn", "the null engine is no server", "leave it out, or use an --engine that is a server"
            )
        if system.layout != Layout():
            raise InputError("--data, --temp, --log", "the null engine keeps no data", "leave them out")
        if system.memory_bytes is not None:
            raise InputError("--memory", "the null engine has no cache", "leave it out")
        if system.memory_total_bytes is not None or system.parallelism is not None:
            raise InputError("--memory-total, parallelism", "the null engine has nothing to limit", "leave them out")
        return system, Secrets()

    def identity(self, system: System, secrets: Secrets) -> dict[str, str]:
        from ironbench import _core

        return {"version": _core.VERSION}

    def start(self, system: System, secrets: Secrets, clients: int) -> NullSession:
        return NullSession(_service_ns(system))


class NullSession:
    """Takes everything, keeps nothing."""

    engine = "null"

    def __init__(self, service_ns: int) -> None:
        self._service_ns = service_ns

    def query(self, sql: str) -> list[Row]:
        return []

    def copy_in(self, sql: str, data: bytes) -> int:
        return data.count(b"\n")

    def line(self, cpus: Sequence[int] = ()) -> Line:
        raise FailureError("engine null", "there is no database to connect to")

    def target(self, load_protocol: str = "prepared", io: str = "auto") -> dict[str, Any]:
        return {"kind": "null", "service_ns": self._service_ns}

    def facts(self) -> dict[str, Any]:
        return {"engine": "null", "settings": {"service_ns": str(self._service_ns)}}

    def counters(self) -> dict[str, int]:
        return {}

    def processes(self) -> list[int]:
        return []

    def directories(self) -> dict[str, str]:
        return {}

    def within(self) -> tuple[str, ...]:
        return ()

    def alive(self) -> bool:
        return True

    def last_words(self) -> str:
        return ""

    def restart(self) -> None:
        """It has no caches."""

    def stop(self) -> None:
        """Nothing was started."""


def _service_ns(system: System) -> int:
    text = system.settings.get("service", "0ns")
    match = _DURATION.fullmatch(text)
    if match is None:
        raise InputError(f"--set service={text}", "it is no duration", "write a number and ns, us, ms or s: 50us")
    service_ns = round(float(match.group(1)) * _UNITS_NS[match.group(2)])
    if service_ns > _LONGEST_NS:
        raise InputError(f"--set service={text}", "it is longer than a minute")
    return service_ns


ENGINE = NullEngine()
