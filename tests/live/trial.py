"""Trials of the core's drive loop for tests: a plan with good defaults, and its result."""

from __future__ import annotations

import json
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from ironbench import _core


def plan(engine: dict[str, Any], *scripts: str, **changes: Any) -> bytes:
    """Returns a closed loop of 4 clients on one thread for 1 s; scripts are called `s0`, `s1`, …"""
    described: dict[str, Any] = {
        "engine": engine,
        "scripts": [{"name": f"s{n}", "text": text, "weight": 1} for n, text in enumerate(scripts)],
        "variables": [],
        "clients": 4,
        "threads": 1,
        "seed": 1,
        "schedule": {"kind": "closed", "think_time_s": 0.0},
        "stop": {"duration_s": 1.0},
        "warmup_s": 0.0,
        "max_tries": 1,
        "on_error": "continue",
        "observers": [],
    }
    return json.dumps(described | changes).encode()


def postgres(connection: dict[str, Any], protocol: str = "prepared", io: str = "auto") -> dict[str, Any]:
    return {"kind": "postgres", "connection": connection, "protocol": protocol, "io": io}


class Trial:
    """The result of a drive, unpacked. `summary` is a dictionary."""

    def __init__(self, result: _core.DriveResult) -> None:
        self.result = result
        self.summary: dict[str, Any] = json.loads(result.summary)
        self.histograms = result.histograms

    def column(self, name: str) -> list[float]:
        data = self.result.timeline[name]
        return list(struct.unpack(f"<{len(data) // 8}d", data))


def run(engine: dict[str, Any], *scripts: str, **changes: Any) -> Trial:
    return Trial(_core.drive(plan(engine, *scripts, **changes)))


def run_and_meanwhile(
    what: Callable[[_core.Progress], None], engine: dict[str, Any], *scripts: str, **changes: Any
) -> Trial:
    """Calls `what` in this thread once the first transactions of the window have ended."""
    progress = _core.Progress()
    results: list[_core.DriveResult] = []
    work = threading.Thread(target=lambda: results.append(_core.drive(plan(engine, *scripts, **changes), progress)))
    work.start()
    while work.is_alive() and not (progress.phase == "run" and progress.transactions):
        time.sleep(0.01)
    try:
        what(progress)
    finally:
        work.join()
    return Trial(results[0])
