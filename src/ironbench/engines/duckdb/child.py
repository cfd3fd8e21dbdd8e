"""What runs inside DuckDB's process: it holds the database, and serves connections that it is handed.

Standard input is a Unix socket. First comes a `Begin` as JSON, answered by `{}` or a refusal; then messages of one byte
each bring the end of a connection's socket with them (SCM_RIGHTS, unix(7)), so that there is no path that others could
connect to. Its end means that the parent is gone, and this process goes too. Every connection is a cursor with a thread
of its own; a request is one frame, its answer another.

Only the standard library and duckdb are loaded.
"""

from __future__ import annotations

import faulthandler
import json
import os
import socket
import struct
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field
from typing import Any

LENGTH = struct.Struct("<Q")
_ROWS_AT_ONCE = 2048
"""As many as DuckDB makes at once (standard_vector_size)."""
_INTERRUPTED = {"refused": "it was cancelled before it began", "kind": "InterruptException"}
ORPHANED = 3
"""Exit code when the parent is gone."""


@dataclass(frozen=True, slots=True)
class Begin:
    """What the process is told first."""

    path: str
    """The database's file, or `:memory:`."""
    settings: dict[str, str] = field(default_factory=dict)
    cpus: tuple[int, ...] = ()


def send(end: socket.socket, message: Any, data: bytes = b"") -> None:
    """One frame: lengths of message and data, the message as JSON, the data as they are."""
    text = json.dumps(message).encode()
    end.sendall(LENGTH.pack(len(text)) + LENGTH.pack(len(data)) + text + data)


def receive(end: socket.socket) -> tuple[Any, bytes] | None:
    """The next frame; None at the end of the connection."""
    head = _exactly(end, 2 * LENGTH.size)
    if head is None:
        return None
    (text_bytes,), (data_bytes,) = LENGTH.unpack_from(head), LENGTH.unpack_from(head, LENGTH.size)
    text, data = _exactly(end, text_bytes), _exactly(end, data_bytes)
    return None if text is None or data is None else (json.loads(text), data)


def _exactly(end: socket.socket, size: int) -> bytes | None:
    pieces = []
    while size:
        try:
            piece = end.recv(min(size, 1 << 20))
        except ConnectionError:
            return None
        if not piece:
            return None
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


class Served:
    """One connection. Requests: `{"query": sql}`, `{"measure": sql}`, `{"copy": sql}` with rows as data.

    A request may come before the one ahead of it is answered. They are numbered from 1, so that whoever interrupts one
    never hits the next.
    """

    def __init__(self, cursor: Any, end: socket.socket) -> None:
        self._cursor = cursor
        self._end = end
        self._numbering = threading.Lock()
        self._number = self._interrupted = 0

    def serve(self) -> None:
        while (request := receive(self._end)) is not None:
            message, data = request
            with self._numbering:
                self._number += 1
                interrupted = self._number <= self._interrupted
            try:
                answer = dict(_INTERRUPTED) if interrupted else self._done(message, data)
            except Exception as error:  # whatever DuckDB raises is its answer
                answer = {"refused": str(error), "kind": type(error).__name__}
            try:
                send(self._end, answer)
            except OSError:
                break
        self._cursor.close()
        self._end.close()

    def interrupt(self, number: int) -> None:
        """The request of that number, whether it runs or has not been begun; one that has ended stays as it is."""
        with self._numbering:
            self._interrupted = max(self._interrupted, number)
            if self._number == number:
                self._cursor.interrupt()

    def end(self) -> None:
        self._cursor.interrupt()

    def _done(self, message: dict[str, str], data: bytes) -> dict[str, Any]:
        if "copy" in message:
            return self._copied(message["copy"], data)
        if "measure" in message:
            return self._measured(message["measure"])
        self._cursor.execute(message["query"])
        columns = [column[0] for column in self._cursor.description or ()]
        rows = self._cursor.fetchall() if columns else []
        return {"columns": columns, "rows": [[told(value) for value in row] for row in rows]}

    def _measured(self, sql: str) -> dict[str, Any]:
        """Times of the clock that all processes share (CLOCK_MONOTONIC, clock_gettime(2)); rows are let go."""
        rows = 0
        submitted_s = time.perf_counter()
        self._cursor.execute(sql)
        while part := self._cursor.fetchmany(_ROWS_AT_ONCE):
            rows += len(part)
        return {"measured": (rows, submitted_s, time.perf_counter())}

    def _copied(self, sql: str, data: bytes) -> dict[str, Any]:
        """`COPY t (…) FROM STDIN` of PostgreSQL's text format, whose values hold no escapes."""
        with tempfile.TemporaryFile(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as file:  # noqa: PTH112
            file.write(data)
            file.flush()
            options = (
                "(format csv, delimiter '\t', header false, nullstr '\\N', quote '', escape '', auto_detect false)"
            )
            copying = sql.upper().index(" FROM ")
            done = self._cursor.execute(f"{sql[:copying]} from '/proc/self/fd/{file.fileno()}' {options}").fetchall()
        return {"copied": int(done[0][0])}


def told(value: Any) -> str | None:
    """A value as text; decimals and dates print as they are."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def main() -> None:
    faulthandler.enable()
    control = socket.socket(fileno=os.dup(0))
    asked = receive(control)
    if asked is None:
        os._exit(ORPHANED)
    begin = Begin(**asked[0])
    if begin.cpus:
        os.sched_setaffinity(0, begin.cpus)
    import duckdb

    try:
        database = duckdb.connect(begin.path, config=dict(begin.settings))
    except Exception as error:
        send(control, {"refused": str(error), "kind": type(error).__name__})
        os._exit(0)
    send(control, {})
    _serve(control, database)
    database.close()
    sys.stderr.flush()
    os._exit(0)


def _serve(control: socket.socket, database: Any) -> None:
    """Until the parent hangs up: `c` brings a connection; `x` and two numbers interrupt, in one of them, a request."""
    served: list[Served] = []
    threads: list[threading.Thread] = []
    while True:
        message, fds, _, _ = socket.recv_fds(control, 17, 1)
        if not message:
            break
        if message.startswith(b"x"):
            served[int(message[1:9])].interrupt(int(message[9:]))
            continue
        one = Served(database.cursor(), socket.socket(fileno=fds[0]))
        served.append(one)
        threads.append(threading.Thread(target=one.serve, daemon=True))
        threads[-1].start()
    for one in served:
        one.end()
    for thread in threads:
        thread.join(5.0)


def as_message(begin: Begin) -> dict[str, Any]:
    return asdict(begin)
