"""Recordings of a real machine and a real server, and a session with fixed answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ironbench.errors import FailureError
from ironbench.host.tree import Tree
from ironbench.model.observation import Sample

Samples = dict[str, list[Sample]]


@pytest.fixture
def recorded() -> Samples:
    """6 s of pgbench's TPC-B-like script with 4 clients, 2 cores, PostgreSQL 18 and a checkpoint in the middle."""
    return _samples("recorded_postgres18.json")


@pytest.fixture
def recorded_elsewhere() -> Samples:
    """6 s of updates with 4 clients, MariaDB 10.11 and two checkpoints."""
    return _samples("recorded_mariadb1011.json")


def _samples(name: str) -> Samples:
    content = json.loads((Path(__file__).parent / name).read_text())
    return {name: [Sample(t_s, text.encode()) for t_s, text in taken] for name, taken in content.items()}


@dataclass
class FakeSession:
    """A session with the members that observers use."""

    engine: str = "postgres"
    pids: tuple[int, ...] = ()
    roles: dict[str, str] = field(default_factory=dict)
    has: tuple[str, ...] = (
        *("pg_stat_wal", "pg_stat_io", "pg_stat_checkpointer", "pg_control_checkpoint()"),
        *("pg_stat_database", "pg_locks"),
    )
    broken: bool = False

    def query(self, sql: str) -> list[tuple[str | None, ...]]:
        if self.broken:
            raise FailureError("the server", "closed the connection")
        return [("t" if any(f"'{name}'" in sql for name in self.has) else "f",)]

    def processes(self) -> tuple[int, ...]:
        return self.pids

    def directories(self) -> dict[str, str]:
        return self.roles

    def __getattr__(self, name: str) -> Any:
        if name in ("on_socket", "delayed", "relay_counters"):  # only sessions with an added latency have these
            raise AttributeError(name)
        raise AssertionError(f"an observer asked for {name}")


@pytest.fixture
def session() -> Callable[..., FakeSession]:
    return FakeSession


@pytest.fixture
def bare(tmp_path: Path) -> Callable[[dict[str, str]], Tree]:
    """A machine with only the given files."""

    def make(files: dict[str, str]) -> Tree:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Tree(tmp_path)

    return make
