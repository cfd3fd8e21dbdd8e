"""Session with SQLite: a connection to the database file, and the pragmas for every connection.

SQLite silently ignores invalid pragmas, so they are checked here. https://www.sqlite.org/pragma.html
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ironbench.engines.base import SessionDefaults
from ironbench.engines.sqlite.connection import SqliteLine
from ironbench.errors import FailureError, InputError, IronbenchError, nearest, written
from ironbench.host import control_groups, data_dirs, register
from ironbench.model.session import Row

if TYPE_CHECKING:
    from ironbench._core import SqliteConnection

_T = TypeVar("_T")
FILE = "ironbench.sqlite"
_SWITCH = ("on", "off", "true", "false", "yes", "no", "1", "0")
_WORDS = {
    "auto_vacuum": ("none", "full", "incremental"),
    "automatic_index": _SWITCH,
    "cell_size_check": _SWITCH,
    "checkpoint_fullfsync": _SWITCH,
    "foreign_keys": _SWITCH,
    "fullfsync": _SWITCH,
    "journal_mode": ("wal", "delete", "truncate", "persist", "memory", "off"),
    "locking_mode": ("normal", "exclusive"),
    "read_uncommitted": _SWITCH,
    "recursive_triggers": _SWITCH,
    "secure_delete": (*_SWITCH, "fast"),
    "synchronous": ("off", "normal", "full", "extra"),
    "temp_store": ("default", "file", "memory"),
}
_NUMBERS = {
    "analysis_limit": (0, 1 << 31),
    "busy_timeout": (0, 1 << 31),
    "cache_size": (-(1 << 31), 1 << 31),
    "cache_spill": (0, 1 << 31),
    "hard_heap_limit": (0, 1 << 62),
    "journal_size_limit": (-1, 1 << 62),
    "mmap_size": (0, 1 << 46),
    "page_size": (512, 65536),
    "soft_heap_limit": (0, 1 << 62),
    "threads": (0, 64),
    "wal_autocheckpoint": (0, 1 << 31),
}
PRAGMAS = sorted([*_WORDS, *_NUMBERS])
DEFAULTS = {"journal_mode": "wal", "synchronous": "full"}
"""Default pragmas. With these, readers run concurrently with one writer, and every commit is on the device before it
returns."""
_OF_THE_FILE = ("page_size", "auto_vacuum")
"""Pragmas that must come first, because they have an effect only before the first table is created."""
_SHAPING = (*_OF_THE_FILE, "analysis_limit")
"""Pragmas that affect what loading writes. analysis_limit determines how much ANALYZE reads, and the statistics of
ANALYZE are stored in the file."""


def validated_pragmas(settings: dict[str, str]) -> dict[str, str]:
    """Returns the settings in lower case. Raises an InputError that contains the nearest name or the possible
    values."""
    return {name: _pragma(name, value.strip().lower()) for name, value in settings.items()}


def shaping(settings: dict[str, str]) -> dict[str, str]:
    """Returns the settings that affect what loading writes."""
    return {name: settings[name] for name in _SHAPING if name in settings}


def statements(settings: dict[str, str]) -> list[str]:
    """Returns the statements that every connection executes when it is opened. The statements are in a valid order."""
    pragmas = DEFAULTS | settings
    ordered = [name for name in _OF_THE_FILE if name in pragmas] + [n for n in pragmas if n not in _OF_THE_FILE]
    return [f"PRAGMA {name}={pragmas[name]}" for name in ordered]


def _pragma(name: str, value: str) -> str:
    subject = written("system.set", f"{name}={value}")
    if name in _WORDS:
        if value not in _WORDS[name]:
            raise InputError(subject, f"invalid value {value!r}", nearest(value, list(_WORDS[name])))
    elif name in _NUMBERS:
        least, most = _NUMBERS[name]
        if not re.fullmatch(r"-?\d+", value) or not least <= int(value) <= most:
            raise InputError(subject, f"is not an integer from {least} to {most}", "change the value")
        if name == "page_size" and int(value) & (int(value) - 1):
            raise InputError(subject, "is not a power of two", "write for example 4096")
    else:
        raise InputError(subject, "not a pragma that can be set here", nearest(name, PRAGMAS))
    return value


class SqliteSession(SessionDefaults):
    """A connection to the file. The connection is closed while a trial runs, so that its locks do not interfere.

    SQLite has no counters for all connections together. The child process is both engine and client, so their CPU times
    cannot be separated.
    """

    engine = "sqlite"

    def __init__(
        self, folder: Path, settings: dict[str, str], lock: int, entry: register.RegisterEntry | None = None
    ) -> None:
        """Opens the connection. `entry`: entry of the database in the register. The entry contains the control group in
        which trials run."""
        self._entry = entry
        self._folder = folder
        self._path = str(folder / FILE)
        self._settings = settings
        self._lock: int | None = lock
        self._using = threading.Lock()
        self._connection: SqliteConnection | SqliteLine | None = None
        """The connection to the file. With a memory limit, the connection is in a process of the control group, so that
        its page cache is charged to the group."""
        self._stopped = False
        self.query("SELECT 1")

    def query(self, sql: str) -> list[Row]:
        return self._attempt(lambda connection: connection.query(sql))

    def copy_in(self, sql: str, data: bytes) -> int:
        return self._attempt(lambda connection: connection.copy_in(sql, data))

    def line(self, cpus: Sequence[int] = ()) -> SqliteLine:
        with self._using:
            self._drop()
        return SqliteLine(self._path, statements(self._settings), self.within(), cpus)

    def target(self, load_protocol: str = "prepared", io: str = "auto") -> dict[str, Any]:
        with self._using:
            self._drop()
        return {"kind": "sqlite", "path": self._path, "pragmas": statements(self._settings)}

    def facts(self) -> dict[str, Any]:
        version = self.query("SELECT sqlite_version()")[0][0] or ""
        settings = {name: self._pragma(name) for name in PRAGMAS}
        return {
            "engine": "sqlite",
            "version": version,
            "settings": {name: value for name, value in settings.items() if value},
            "changed": DEFAULTS | self._settings,
            "build": [row[0] for row in self.query("PRAGMA compile_options")],
            "server": "a library in a child process",
            "caches": "one per client",
        }

    def directories(self) -> dict[str, str]:
        return {"data": str(self._folder), "log": str(self._folder)}

    def within(self) -> tuple[str, ...]:
        return () if self._entry is None else control_groups.entering(Path(self._entry.groups[0]))

    def alive(self) -> bool:
        return not self._stopped and Path(self._path).exists()

    def restart(self) -> None:
        """Closes the connection. Nothing else is needed, because each trial has a separate process."""
        with self._using:
            self._drop()

    def lose_power(self, cut: Callable[[], None], restore: Callable[[], None]) -> None:
        """Simulates a power cut, as in `PowerCutSession`. No other process uses the engine, because the trial's process
        has ended."""
        with self._using:
            cut()
            # Closing the connection may write, which fails during the power cut.
            with contextlib.suppress(IronbenchError):
                self._drop()
            if self._lock is not None:
                os.close(self._lock)
            self._lock = None
            restore()
            self._lock = data_dirs.lock(self._folder)

    def stop(self) -> None:
        if self._stopped:
            return
        with self._using:
            self._stopped = True
            self._drop()
            if self._entry is not None:
                register.end(self._entry)
            if self._lock is not None:
                os.close(self._lock)

    def require_page_size(self, declared: str | None) -> None:
        """Raises InputError if the page size of the file differs from the declared page size."""
        present = self._pragma("page_size")
        if declared is not None and present != declared:
            raise InputError(
                written("system.set", f"page_size={declared}"),
                f"{self._path} was created with pages of {present} bytes",
                f"use another directory with {written('layout.data')}, or remove the file",
            )

    def _pragma(self, name: str) -> str:
        rows = self.query(f"PRAGMA {name}")
        return (rows[0][0] or "") if rows else ""

    def _attempt(self, use: Callable[[SqliteConnection | SqliteLine], _T]) -> _T:
        from ironbench import _core

        with self._using:
            if self._stopped:
                raise FailureError("SQLite", "the session was stopped")
            if self._connection is None and self._entry is None:
                self._connection = _core.SqliteConnection(self._path, statements(self._settings))
            elif self._connection is None:
                self._connection = SqliteLine(self._path, statements(self._settings), self.within())
            assert self._connection is not None
            return use(self._connection)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
