"""SQLite: a library in a child process of each trial; here only its file, its settings and what it says of itself."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ironbench.engines import ideal, single_file
from ironbench.engines.base import Costs, Engine, Traits
from ironbench.engines.sqlite import pragmas
from ironbench.engines.sqlite.dialect import SqliteDialect
from ironbench.engines.sqlite.line import SqliteLine
from ironbench.errors import FailureError, InputError, IronbenchError
from ironbench.machine import control_groups, copies
from ironbench.machine.copies import Copied
from ironbench.model.secrets import Secrets
from ironbench.model.session import Row
from ironbench.model.system import Layout, System
from ironbench.process import place, processes, register

if TYPE_CHECKING:
    from ironbench._core import SqliteConnection

_T = TypeVar("_T")
_MOST_CLIENTS = 1000
_MOST_PARALLEL = 9
"""SQLITE_MAX_WORKER_THREADS is 8 unless compiled otherwise (https://www.sqlite.org/limits.html)."""
FILE = "ironbench.sqlite"
_NEVER_IDEAL = {
    "log": "SQLite keeps its log beside the data: a directory in memory would make both free",
    "data": "every connection has a cache of its own, which is empty at the start of each trial",
    "client": "the client and SQLite work in the same threads: nothing tells what is the client's",
}
"""Parts that SQLite cannot have as good as free, and why; its spills can (`temp_store`)."""


class SqliteEngine(Engine):
    name = "sqlite"
    traits = Traits(
        doc="SQLite in a child process, write-ahead log on, every commit synced; pragmas by --set",
        abilities=frozenset({"scripts", "data", "queries", "in client", "power cut", "whole numbers"}),
        preference=50,
        protocols=("library",),
        costs=Costs(
            start_stop_s=0.3,
            mixed_read_bytes=4096,
            row_head_bytes=6,  # the varints of a record (https://www.sqlite.org/fileformat2.html, section 2.1)
            queries_s=150.0,
        ),
        dialect=SqliteDialect(),
        writers=1,
    )

    def validated(self, system: System, clients: int) -> tuple[System, Secrets]:
        """The system with its directory and its pragmas in lower case. InputError."""
        if system.dsn is not None:
            raise InputError("--dsn", "SQLite is no server", "use --data DIR, or an --engine that is a server")
        for option, told in (("--temp", system.layout.temp), ("--log", system.layout.log)):
            if told is not None:
                raise InputError(option, "SQLite keeps its log and its spills beside the data", "use --data alone")
        ideal.refuse(system, _NEVER_IDEAL)
        if not 1 <= clients <= _MOST_CLIENTS:
            raise InputError(f"{clients} clients", f"SQLite serves 1 to {_MOST_CLIENTS}, each by a thread of its own")
        if system.memory_bytes is not None and "cache_size" in system.settings:
            raise InputError("--memory", "--set cache_size says the same thing another way", "keep one of the two")
        settings = pragmas.validated(system.settings)
        if system.parallelism is not None:
            settings |= _parallel(system.parallelism, settings)
        if system.memory_total_bytes is not None:
            control_groups.require(system.memory_total_bytes)
        if "temp" in system.ideal:
            settings["temp_store"] = "memory"
        data = system.layout.data or str(place.default("sqlite", "3"))
        return replace(
            system, settings=settings, layout=replace(system.layout, data=place.check(data, "data"))
        ), Secrets()

    def identity(self, system: System, secrets: Secrets) -> dict[str, str]:
        from ironbench import _core

        connection = _core.SqliteConnection(":memory:")
        try:
            return {"version": connection.query("SELECT sqlite_source_id()")[0][0] or ""}
        finally:
            connection.close()

    def start(self, system: System, secrets: Secrets, clients: int) -> SqliteSession:
        """The file, made when it is not there. FailureError when it cannot be used."""
        folder = place.claim(system.layout.data or str(place.default("sqlite", "3")), "data")
        lock = place.lock(folder)
        settings = dict(system.settings)
        if system.memory_bytes is not None:
            # Every connection has a cache of its own; all together get what was asked for.
            settings["cache_size"] = str(-max(1, system.memory_bytes // 1024 // clients))
        entry = None
        try:
            entry = _limited(folder, system.memory_total_bytes)
            session = SqliteSession(folder, settings, lock, entry)
            session.require_page_size(settings.get("page_size"))
        except BaseException:
            if entry is not None:
                register.end(entry)
            os.close(lock)
            raise
        return session

    def basis(self, system: System) -> str:
        from ironbench import _core

        memory = _core.SqliteConnection(":memory:", [])
        try:
            version = memory.query("SELECT sqlite_version()")[0][0]
        finally:
            memory.close()
        return " ".join(["sqlite", str(version), *pragmas.statements(pragmas.shaping(system.settings))])

    def plain(self, system: System, folder: Path) -> System:
        return System(self.name, system.label, pragmas.shaping(system.settings), Layout(str(folder)))

    def snapshot(self, system: System, folder: Path, *, keep: bool = True) -> Copied:
        data = self._data(system)
        lock = place.lock(data)
        try:
            return single_file.take(data / FILE, folder, keep=keep)
        finally:
            os.close(lock)

    def restore(self, system: System, folder: Path) -> Copied:
        data = place.claim(str(self._data(system)), "data")
        lock = place.lock(data)
        try:
            return single_file.put_back(data / FILE, folder)
        finally:
            os.close(lock)

    def _data(self, system: System) -> Path:
        return Path(system.layout.data or place.default("sqlite", "3"))


def _parallel(most: int, settings: dict[str, str]) -> dict[str, str]:
    """Threads that help a statement to sort (https://www.sqlite.org/pragma.html#pragma_threads)."""
    if "threads" in settings:
        raise InputError(f"parallelism {most}", "--set threads says the same thing another way", "keep one of the two")
    if not 1 <= most <= _MOST_PARALLEL:
        raise InputError(f"parallelism {most}", f"it is not between 1 and {_MOST_PARALLEL}")
    return {"threads": str(most - 1)}


def _limited(folder: Path, limit_bytes: int | None) -> register.Entry | None:
    """The group that trials will run in; pages cached before would not count in it, and so are dropped."""
    if limit_bytes is None:
        return None
    group = control_groups.chosen()
    copies.sync(folder)
    copies.evict(folder)
    entry = None
    try:
        with processes.interrupt_held():
            entry = register.new("sqlite", str(folder), groups=(str(group),))
            control_groups.make(group, limit_bytes)
    except BaseException:
        if entry is not None:
            register.end(entry)
        raise
    return entry


class SqliteSession:
    """Our own connection to the file. It is closed while a trial runs: no lock of ours is in the way."""

    engine = "sqlite"

    def __init__(self, folder: Path, settings: dict[str, str], lock: int, entry: register.Entry | None = None) -> None:
        """`entry`: of the register, with the control group that trials run in."""
        self._entry = entry
        self._folder = folder
        self._path = str(folder / FILE)
        self._settings = settings
        self._lock: int | None = lock
        self._using = threading.Lock()
        self._connection: SqliteConnection | None = None
        self._stopped = False
        self.query("SELECT 1")

    def query(self, sql: str) -> list[Row]:
        return self._attempt(lambda connection: connection.query(sql))

    def copy_in(self, sql: str, data: bytes) -> int:
        return self._attempt(lambda connection: connection.copy_in(sql, data))

    def line(self, cpus: Sequence[int] = ()) -> SqliteLine:
        with self._using:
            self._drop()
        return SqliteLine(self._path, pragmas.statements(self._settings), self.within(), cpus)

    def target(self, load_protocol: str = "prepared", io: str = "auto") -> dict[str, Any]:
        with self._using:
            self._drop()
        return {"kind": "sqlite", "path": self._path, "pragmas": pragmas.statements(self._settings)}

    def facts(self) -> dict[str, Any]:
        version = self.query("SELECT sqlite_version()")[0][0] or ""
        settings = {name: self._pragma(name) for name in pragmas.KNOWN}
        return {
            "engine": "sqlite",
            "version": version,
            "settings": {name: value for name, value in settings.items() if value},
            "changed": pragmas.DEFAULTS | self._settings,
            "build": [row[0] for row in self.query("PRAGMA compile_options")],
            "server": "a library in a child process",
            "caches": "one per client",
        }

    def counters(self) -> dict[str, int]:
        """SQLite counts nothing across connections."""
        return {}

    def processes(self) -> list[int]:
        """The child process is engine and client at once; nothing tells their CPU time apart."""
        return []

    def directories(self) -> dict[str, str]:
        return {"data": str(self._folder), "log": str(self._folder)}

    def within(self) -> tuple[str, ...]:
        return () if self._entry is None else control_groups.entering(Path(self._entry.groups[0]))

    def alive(self) -> bool:
        return not self._stopped and Path(self._path).exists()

    def last_words(self) -> str:
        return ""

    def restart(self) -> None:
        """Every trial has a process of its own anyway."""
        with self._using:
            self._drop()

    def lose_power(self, cut: Callable[[], None], restore: Callable[[], None]) -> None:
        """See `model.session.Powered`: there is no engine but in our own process and that of a trial, which is over."""
        with self._using:
            cut()
            with contextlib.suppress(IronbenchError):  # it may want to write, and cannot any more
                self._drop()
            if self._lock is not None:
                os.close(self._lock)
            self._lock = None
            restore()
            self._lock = place.lock(self._folder)

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

    def require_page_size(self, wanted: str | None) -> None:
        """InputError when the file was made with pages of another size."""
        found = self._pragma("page_size")
        if wanted is not None and found != wanted:
            raise InputError(
                f"--set page_size={wanted}",
                f"{self._path} was made with pages of {found} bytes",
                "name another directory with --data, or remove the file",
            )

    def _pragma(self, name: str) -> str:
        rows = self.query(f"PRAGMA {name}")
        return (rows[0][0] or "") if rows else ""

    def _attempt(self, use: Callable[[SqliteConnection], _T]) -> _T:
        from ironbench import _core

        with self._using:
            if self._stopped:
                raise FailureError("SQLite", "the session was stopped")
            if self._connection is None:
                self._connection = _core.SqliteConnection(self._path, pragmas.statements(self._settings))
            return use(self._connection)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


ENGINE = SqliteEngine()
