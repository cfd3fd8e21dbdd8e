"""DuckDB's child process, and the parent's connections to it.

The process opens the database and serves connections. The first message on its channel is an `OpenRequest`, which the
process answers. Then every byte on the channel carries a socket for a new connection (SCM_RIGHTS, unix(7)). There is no
socket path to which other programs could connect. Every connection is a DuckDB cursor with its own thread.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from ironbench.engines.load_threads import PieceQueue, loaded, together
from ironbench.errors import FailureError
from ironbench.host import child, processes
from ironbench.host.child import Channel, Child, answer
from ironbench.host.child_connection import CANCELLED, ChildChannel, Served, measured
from ironbench.host.processes import ProcessId

STOP_S = 60.0
"""Timeout in seconds for closing a database. Closing writes a checkpoint first."""
LASTING = ("Fatal", "Internal", "Connection")
"""Errors that make the whole database unusable for all connections (duckdb.org, "Invalidated Databases")."""
ROWS_AT_ONCE = 2048
"""Number of rows fetched at once: DuckDB's vector size (standard_vector_size)."""


def package_folder() -> str:
    """Returns the path of the package duckdb. Does not import the package, because it would take 30 MB. Raises
    InputError."""
    return child.package_folder("duckdb", "duckdb", "pip install duckdb")


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """First message to the process: the database to open."""

    path: str
    """Path of the database file, or `:memory:`."""
    settings: dict[str, str] = field(default_factory=dict)
    cpus: tuple[int, ...] = ()


class DuckdbProcess:
    """A process that has one database open until it is stopped or its parent ends."""

    def __init__(self, begin: OpenRequest, within: Sequence[str] = ()) -> None:
        """Starts the process. `within`: prefix of the process's command. Raises FailureError if the file cannot be
        opened or a setting is invalid."""
        self._child = Child(__name__, "DuckDB", within=within, packages=[package_folder()])
        self._lock = threading.Lock()
        try:
            if not self._child.ask(asdict(begin)):
                raise self._child.died()
        except BaseException:
            self.stop()
            raise
        self.id: ProcessId | None = processes.identify(self._child.pid)

    @property
    def pid(self) -> int:
        return self._child.pid

    def connect(self) -> DuckdbConnection:
        """Opens a separate connection. Raises EngineDiedError."""
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            try:
                socket.send_fds(self._child.socket, [b"c"], [theirs.fileno()])
            except OSError as error:
                raise self._child.died() from error
        return DuckdbConnection(Channel(ours), self._child.died)

    def alive(self) -> bool:
        return self._child.alive()

    def last_words(self) -> str:
        """Describes how the process ended, and includes the last line that it wrote. Returns "" while the process
        runs."""
        how, hint = self._child.how_it_ended()
        return "; ".join(filter(None, (how and f"its process {how}", hint)))

    def stop(self) -> None:
        """Closes the database and ends the process. Closing checkpoints the WAL. A second call has no effect."""
        self._child.stop(STOP_S)


class DuckdbConnection(ChildChannel):
    """A connection to a `DuckdbProcess`. The connection runs one statement at a time, and the next statement can be
    sent in advance."""


class _Cursor:
    """Serves the requests of one connection."""

    def __init__(self, cursor: Any, end: socket.socket) -> None:
        self._cursor = cursor
        self._channel = Channel(end)
        self.served = Served(self._channel, self._done, cursor.interrupt)

    def serve(self) -> None:
        self.served.serve()
        self._cursor.close()
        self._channel.close()

    def _done(self, message: dict[str, str], data: bytes) -> dict[str, Any]:
        import duckdb

        try:
            if "copy" in message:
                return self._copied(message["copy"], data)
            if "measure" in message:
                return {"measured": measured(self._cursor, message["measure"], ROWS_AT_ONCE)}
            self._cursor.execute(message["query"])
            columns = [column[0] for column in self._cursor.description or ()]
            rows = self._cursor.fetchall() if columns else []
            return {"columns": columns, "rows": [[text_of(value) for value in row] for row in rows]}
        except Exception as error:  # every error of DuckDB is returned as the answer to the request
            refused = FailureError("DuckDB", str(error))
            if isinstance(error, duckdb.InterruptException):
                refused.sqlstate = CANCELLED
            elif isinstance(error, duckdb.Error) and (code := code_of(error)) not in LASTING:
                refused.sqlstate = code  # only the statement failed, so the connection remains usable
            raise refused from error

    def _copied(self, sql: str, data: bytes) -> dict[str, Any]:
        """Runs `COPY t (…) FROM STDIN` with data in PostgreSQL's text format, without escapes."""
        with tempfile.TemporaryFile(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as file:  # noqa: PTH112
            file.write(data)
            file.flush()
            options = (
                "(format csv, delimiter '\t', header false, nullstr '\\N', quote '', escape '', auto_detect false)"
            )
            copying = sql.upper().index(" FROM ")
            done = self._cursor.execute(f"{sql[:copying]} from '/proc/self/fd/{file.fileno()}' {options}").fetchall()
        return {"copied": int(done[0][0])}


def code_of(error: Exception) -> str:
    """Returns the name of the error, such as `Constraint`. DuckDB has no SQLSTATEs."""
    return type(error).__name__.removesuffix("Exception")


def text_of(value: Any) -> str | None:
    """Converts a value to text. Decimals and dates keep DuckDB's format."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def main(parent: Channel) -> None:
    """Entry point of the child process. When the parent closes the channel, interrupts running statements and closes
    the database."""
    frame = parent.receive()
    if frame is None:
        return
    begin = OpenRequest(**frame[0])
    if begin.cpus:
        os.sched_setaffinity(0, begin.cpus)
    import duckdb

    try:
        database = duckdb.connect(begin.path, config=dict(begin.settings))
    except Exception as error:
        raise FailureError("DuckDB", str(error)) from error
    answer(parent, {"open": True})
    cursors: list[_Cursor] = []
    threads: list[threading.Thread] = []
    while True:
        message, fds, _, _ = socket.recv_fds(parent.socket, 1, 1)
        if not message:
            break
        one = _Cursor(database.cursor(), socket.socket(fileno=fds[0]))
        cursors.append(one)
        threads.append(threading.Thread(target=one.serve, daemon=True))
        threads[-1].start()
    for one in cursors:
        one.served.end()
    for thread in threads:
        thread.join(5.0)
    database.close()


_NOT_FOR_LOADING = ("memory_limit", "max_memory", "threads", "worker_threads")
"""Limits that apply only to trials. Loading is not measured, so it runs without them."""


def load(plan: dict[str, Any], progress: Any) -> dict[str, Any]:
    """Loads rows in the child process. For engines whose wire protocol the core implements, the core's `load_rows` does
    this. Raises FailureError."""
    import duckdb

    import ironbench._core as core

    begin = time.perf_counter()
    generator = json.dumps(plan["generator"]).encode()
    workers = int(plan["connections"])
    waiting = PieceQueue(iter(core.cut_rows(generator, workers, json.dumps(plan["done"]).encode())))
    settings = {name: value for name, value in plan["engine"]["settings"].items() if name not in _NOT_FOR_LOADING}
    failures: list[Exception] = []
    try:
        database = duckdb.connect(plan["engine"]["path"], config={**settings, "threads": str(workers)})
        # The order of rows does not matter, because pieces finish in any order. Without it, each thread can write its
        # own row groups.
        database.execute("set preserve_insertion_order = false")
        # An open cursor would keep the database open, so each cursor ends with its thread.
        together(
            [partial(_work, database.cursor(), plan, generator, waiting, progress, failures) for _ in range(workers)]
        )
        if not failures:
            database.execute("checkpoint")
        database.close()
    except duckdb.Error as error:
        failures.append(error)
    if failures:
        cause = str(failures[0])
        full = "No space left" in cause
        hint = "free some space or choose a smaller scale; the partial load is discarded" if full else ""
        raise FailureError("load", cause, hint)
    return loaded(progress, begin, workers)


def _work(
    cursor: Any, plan: dict[str, Any], generator: bytes, waiting: PieceQueue, progress: Any, failures: list[Exception]
) -> None:
    import ironbench._core as core

    try:
        while not failures and (piece := waiting.take()) is not None:
            table, first, past = piece
            rows = core.ArrowRows(generator, table, first, past, progress)  # noqa: F841 - read by name in the statement
            note = plan["note"].replace(":table", table).replace(":first", str(first)).replace(":past", str(past))
            cursor.execute("begin")
            cursor.execute(f"insert into {table} select * from rows")
            cursor.execute(note)
            cursor.execute("commit")
    except Exception as error:
        failures.append(error)
