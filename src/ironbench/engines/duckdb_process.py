"""DuckDB's process as we see it: started, asked, ended."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from ironbench.engines import process
from ironbench.engines.duckdb_child import Begin, as_message, receive, send
from ironbench.engines.process import ProcessId
from ironbench.errors import EngineDiedError, FailureError, InputError
from ironbench.model.session import Row

CANCELLED = "57014"
"""SQLSTATE query_canceled, as PostgreSQL says it."""
STOP_S = 60.0
"""A database that is closed writes its checkpoint first."""
_CODE = (
    "import sys; sys.path.insert(0, {packages!r}); sys.path.append({duckdb!r}); "
    "import ironbench.engines.duckdb_child as child; child.main()"
)


def package_folder() -> str:
    """Where Python finds duckdb; without importing it, for it takes 30 MB."""
    found = importlib.util.find_spec("duckdb")
    if found is None or found.origin is None:
        raise InputError("--engine duckdb", "the Python package duckdb is not installed", "pip install duckdb")
    return str(Path(found.origin).parents[1])


class DuckdbProcess:
    """A process that holds one database until it is stopped, or we are gone."""

    def __init__(self, begin: Begin, within: Sequence[str] = ()) -> None:
        """`within` is put before its command. FailureError: the file cannot be opened, a setting is refused."""
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._lock = threading.Lock()
        self._connections = 0
        packages = str(Path(process.__file__).resolve().parents[2])
        code = _CODE.format(packages=packages, duckdb=package_folder())
        self._control, theirs = socket.socketpair()
        with theirs:
            self._child = subprocess.Popen(
                [*within, sys.executable, "-I", "-S", "-c", code],
                stdin=theirs.fileno(),
                stdout=self._log.fileno(),
                stderr=self._log.fileno(),
                process_group=0,  # Ctrl-C in our terminal is ours alone
            )
        try:
            send(self._control, as_message(begin))
            answer = receive(self._control)
        except BaseException:
            self.stop()
            raise
        if answer is None or "refused" in answer[0]:
            cause = self.last_words() if answer is None else str(answer[0]["refused"])
            self.stop()
            raise FailureError("DuckDB", cause)
        self.id: ProcessId | None = process.identify(self._child.pid)

    @property
    def pid(self) -> int:
        return int(self._child.pid)

    def connect(self) -> DuckdbConnection:
        """A connection of its own. EngineDiedError."""
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            try:
                socket.send_fds(self._control, [b"c"], [theirs.fileno()])
            except OSError as error:
                raise self.died() from error
            number = self._connections
            self._connections += 1
        return DuckdbConnection(self, ours, number)

    def interrupt(self, number: int) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._control.sendall(b"x%08d" % number)

    def alive(self) -> bool:
        return self._child.poll() is None

    def died(self) -> EngineDiedError:
        """What to raise when it hung up."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(5.0)
        return EngineDiedError("DuckDB", self.last_words())

    def last_words(self) -> str:
        """How it ended and the last line that it wrote; "" while it lives."""
        code = self._child.poll()
        if code is None:
            return ""
        how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        lines = self._said().strip().splitlines()
        if code == -signal.SIGKILL and not lines:
            return f"its process was {how}: the kernel does this to the largest process when memory runs out"
        # A crash is told first and explained by a stack; an exception is told last.
        return f"its process {how}" + (f", and said: {lines[0 if code < 0 else -1]}" if lines else "")

    def stop(self) -> None:
        """Ends it in good order: the database is closed, and its log with it. May be called twice."""
        self._control.close()
        try:
            self._child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def _said(self) -> str:
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), 16384, max(0, size - 16384)).decode(errors="replace")


class DuckdbConnection:
    """A connection to a `DuckdbProcess`; one statement at a time."""

    def __init__(self, owner: DuckdbProcess, end: socket.socket, number: int) -> None:
        self._owner = owner
        self._end = end
        self._number = number
        self._columns: list[str] = []

    def measure(self, sql: str) -> tuple[int, float, float]:
        """Rows, and when DuckDB was given the statement and when the last row was there (`time.perf_counter`)."""
        rows, submitted_s, answered_s = self._asked({"measure": sql})["measured"]
        return rows, submitted_s, answered_s

    def query(self, sql: str) -> list[Row]:
        """Runs one or more statements; the rows of the last. FailureError: what DuckDB says; EngineDiedError."""
        answer = self._asked({"query": sql})
        self._columns = answer["columns"]
        return [tuple(row) for row in answer["rows"]]

    def columns(self) -> list[str]:
        """Column names of the last query."""
        return self._columns

    def copy_in(self, sql: str, data: bytes) -> int:
        """Rows copied by `COPY t (…) FROM STDIN`, of PostgreSQL's text format."""
        return int(self._asked({"copy": sql}, data)["copied"])

    def cancel(self) -> None:
        """From another thread: the running statement ends with a failure."""
        self._owner.interrupt(self._number)

    def close(self) -> None:
        """May be called twice."""
        self._end.close()

    def _asked(self, message: dict[str, Any], data: bytes = b"") -> dict[str, Any]:
        try:
            send(self._end, message, data)
            answer = receive(self._end)
        except ConnectionError as error:
            raise self._owner.died() from error
        except KeyboardInterrupt:
            self.cancel()
            self._end.close()  # its answer would be taken for that to the next question
            raise
        if answer is None:
            raise self._owner.died()
        told: dict[str, Any] = answer[0]
        if "refused" in told:
            refused = FailureError("DuckDB", told["refused"])
            refused.sqlstate = CANCELLED if told["kind"] == "InterruptException" else ""
            raise refused
        return told
