"""Session with DuckDB: a child process, and a connection to it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ironbench.engines.base import SessionDefaults
from ironbench.engines.duckdb import process, settings, trial_child
from ironbench.engines.duckdb.process import DuckdbConnection, DuckdbProcess, OpenRequest, package_folder
from ironbench.errors import FailureError
from ironbench.host import control_groups, copies, register
from ironbench.model.session import Row
from ironbench.model.system import System

FILE = "ironbench.duckdb"
TEMP = "duckdb.tmp"
"""Name of the directory for temporary files, inside the directory of `--temp` (or `--data`)."""
_T = TypeVar("_T")


class DuckdbSession(SessionDefaults):
    """A session that starts the process when it is first used. After `restart`, it starts a new process. DuckDB has no
    counters."""

    engine = "duckdb"

    def __init__(self, system: System, folder: Path, temp: Path, lock: int, entry: register.RegisterEntry) -> None:
        """Creates the session. `lock`: file descriptor that locks the data directory. `entry`: entry of the database in
        the register. `stop` releases the lock and ends the entry. Raises FailureError."""
        self._system = system
        self._folder = folder
        self._temp = temp / TEMP
        self._lock = lock
        self._entry = entry
        self._settings = settings.effective(system, str(self._temp))
        self._using = threading.RLock()
        self._process: DuckdbProcess | None = None
        self._connection: DuckdbConnection | None = None
        self._words = ""
        self._stopped = False
        self.query("select 1")

    def line(self, cpus: Sequence[int] = ()) -> DuckdbConnection:
        """Opens a separate connection. `cpus` has no effect, because all connections share one process."""
        with self._using:
            return self._running().connect()

    def query(self, sql: str) -> list[Row]:
        return self._attempt(lambda connection: connection.query(sql))

    def copy_in(self, sql: str, data: bytes) -> int:
        return self._attempt(lambda connection: connection.copy_in(sql, data))

    def target(self, load_protocol: str = "prepared", io: str = "auto") -> dict[str, Any]:
        """Ends the process, and returns the target for the core. The process must end because only one process may have
        the file open, and the core opens the file next."""
        self.restart()
        packages = package_folder()
        return {
            "kind": "duckdb",
            "path": str(self._folder / FILE),
            "settings": self._settings,
            "driver": {"module": trial_child.__name__, "packages": packages},
            "loader": {"module": process.__name__, "packages": packages},
        }

    def facts(self) -> dict[str, Any]:
        rows = self.query("select name, value from duckdb_settings() order by name")
        settings = {str(name): value or "" for name, value in rows}
        version = self.query("select library_version, source_id from pragma_version()")[0]
        return {
            "engine": "duckdb",
            "version": version[0] or "",
            "settings": {name: value for name, value in settings.items() if value},
            "changed": {name: value for name, value in self._settings.items() if name != "temp_directory"},
            "build": [f"source {version[1]}"],
            "server": "a library in a child process",
            "caches": "one for all clients",
        }

    def processes(self) -> list[int]:
        with self._using:
            if self._stopped:
                return []
            return [self._running().pid]

    def directories(self) -> dict[str, str]:
        roles = {"data": str(self._folder), "log": str(self._folder)}
        return roles if self._temp.parent == self._folder else roles | {"temp": str(self._temp.parent)}

    def within(self) -> tuple[str, ...]:
        return control_groups.entering(Path(self._entry.groups[0])) if self._entry.groups else ()

    def alive(self) -> bool:
        if self._stopped:
            return False
        with self._using:
            return self._process is None or self._process.alive()

    def last_words(self) -> str:
        with self._using:
            return self._words if self._process is None else self._process.last_words()

    def restart(self) -> None:
        """Closes the file. The next use opens it again, with cold caches."""
        with self._using:
            self._end()

    def stop(self) -> None:
        if self._stopped:
            return
        with self._using:
            self._stopped = True
            self._end()
            register.end(self._entry)
            os.close(self._lock)

    def _attempt(self, use: Callable[[DuckdbConnection], _T]) -> _T:
        with self._using:
            running = self._running()
            if self._connection is None:
                self._connection = running.connect()
            return use(self._connection)

    def _running(self) -> DuckdbProcess:
        if self._stopped:
            raise FailureError("DuckDB", "the session was stopped")
        if self._process is None:
            if self._entry.groups:
                copies.sync(self._folder)  # cached pages would not be charged to the group, so they are evicted
                copies.evict(self._folder)
            begin = OpenRequest(str(self._folder / FILE), self._settings, tuple(self._system.server_cpus or ()))
            self._process = DuckdbProcess(begin, self.within())
            self._entry = register.with_server(self._entry, self._process.id, None)
        return self._process

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            self._process.stop()
            self._words = self._process.last_words()
            self._process = None
