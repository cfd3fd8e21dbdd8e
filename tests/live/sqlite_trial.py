"""Plans of trials on SQLite files, driven in a child process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ironbench import _core
from ironbench.host.job import ChildPlacement
from ironbench.trial.drive.run import drive_in_child

DEFAULT_PRAGMAS = ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=OFF")


def database(folder: Path, schema: str) -> str:
    """Creates an SQLite file."""
    path = str(folder / "trial.db")
    connection = _core.SqliteConnection(path, DEFAULT_PRAGMAS)
    connection.query(schema)
    connection.close()
    return path


def rows(path: str, sql: str) -> list[tuple[str | None, ...]]:
    connection = _core.SqliteConnection(path)
    try:
        return connection.query(sql)
    finally:
        connection.close()


def plan(path: str, script: str, pragmas: tuple[str, ...] = (), **other: Any) -> bytes:
    """Returns a short closed-loop plan, with parts replaced by `other`."""
    parts: dict[str, Any] = {
        "engine": {"kind": "sqlite", "path": path, "pragmas": [*DEFAULT_PRAGMAS, *pragmas]},
        "scripts": [{"name": "script", "text": script, "weight": 1}],
        "variables": [],
        "clients": 1,
        "threads": 1,
        "seed": 7,
        "schedule": {"kind": "closed", "think_time_s": 0.0},
        "stop": {"transactions": 100},
        "warmup_s": 0.0,
        "max_tries": 1,
        "observers": [],
    }
    return json.dumps(parts | other).encode()


def summary(result: _core.DriveResult) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(result.summary)
    return told


def trial(folder: Path, compiled: bytes, progress: _core.Progress | None = None, **how: Any) -> dict[str, Any]:
    """Drives the plan in a child process and returns the summary."""
    log = folder / "child.log"
    return summary(drive_in_child(compiled, progress or _core.Progress(), ChildPlacement(log, **how)))
