"""What can be seen of a server that was running already: only if it is on this machine, and in sight."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ironbench.errors import IronbenchError
from ironbench.model.session import Row
from ironbench.process import processes
from ironbench.process.processes import ProcessId

Query = Callable[[str], list[Row]]

_HERE = ("localhost", "127.0.0.1", "::1")
_PROGRAMS = ("postgres", "postmaster")
_CLOCKS_APART_S = 3.0

_BACKEND = """
    SELECT pid, extract(epoch FROM backend_start) FROM pg_stat_activity WHERE pid = pg_backend_pid()
"""
_DATA = "SELECT setting FROM pg_settings WHERE name = 'data_directory'"
_TEMP = """
    SELECT pg_tablespace_location(t.oid)
      FROM pg_tablespace t
     WHERE spcname = split_part(current_setting('temp_tablespaces'), ',', 1)
"""


@dataclass(frozen=True, slots=True)
class Place:
    """A server's processes and directories on this machine."""

    server: ProcessId | None = None
    directories: dict[str, str] = field(default_factory=dict)


def find(host: str, query: Query) -> Place:
    """The server's place on this machine; an empty one when it runs elsewhere or in another container."""
    if not host.startswith("/") and host not in _HERE:
        return Place()
    pid, started = query(_BACKEND)[0]
    if not _is_backend(int(pid or 0), float(started or 0)):
        return Place()
    parent = processes.parent(int(pid or 0))
    return Place(None if parent is None else processes.identify(parent), _directories(query))


def _is_backend(pid: int, started_unix_s: float) -> bool:
    """Whether that process id, here, is our backend: the server may count its processes in another namespace."""
    born = processes.started_unix_s(pid)
    return born is not None and abs(born - started_unix_s) < _CLOCKS_APART_S and processes.command(pid) in _PROGRAMS


def _directories(query: Query) -> dict[str, str]:
    data = _setting(query, _DATA)
    if not data or not Path(data).is_dir():
        return {}
    found = {"data": data, "log": os.path.realpath(Path(data, "pg_wal"))}
    temp = _setting(query, _TEMP)
    if temp and Path(temp).is_dir():
        found["temp"] = temp
    return found


def _setting(query: Query, sql: str) -> str:
    try:
        rows = query(sql)
    except IronbenchError:
        return ""
    return (rows[0][0] or "") if rows else ""
