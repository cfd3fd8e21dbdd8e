"""DuckDB's process as we see it: started, asked, ended."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import IO, Any

from ironbench.engines.duckdb.child import Begin, as_message, receive, send
from ironbench.errors import EngineDiedError, FailureError, InputError
from ironbench.model.session import Row
from ironbench.process import processes
from ironbench.process.processes import ProcessId

CANCELLED = "57014"
"""SQLSTATE query_canceled, as PostgreSQL says it."""
STOP_S = 60.0
"""A database that is closed writes its checkpoint first."""
_PATIENCE_S = 10.0
_AGAIN_S = 0.2
_CODE = (
    "import sys; sys.path.insert(0, {packages!r}); sys.path.append({duckdb!r}); "
    "import ironbench.engines.duckdb.child as child; child.main()"
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
        packages = str(Path(processes.__file__).resolve().parents[2])
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
        self.id: ProcessId | None = processes.identify(self._child.pid)

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

    def interrupt(self, connection: int, request: int) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._control.sendall(b"x%08d%08d" % (connection, request))

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
    """A connection to a `DuckdbProcess`; one statement at a time, and the next one announced."""

    def __init__(self, owner: DuckdbProcess, end: socket.socket, number: int) -> None:
        self._owner = owner
        self._end = end
        self._number = number
        self._columns: list[str] = []
        self._answered = 0
        self._awaited = 0
        """Number of the request that is waited for; 0: none is. Cleared before `_answered` grows, and read once by
        whoever cancels: what is announced behind it is never meant."""
        self._announced: dict[str, Any] | None = None
        """Sent already, and not yet asked for."""

    def measure(self, sql: str) -> tuple[int, float, float]:
        """Rows, and when DuckDB was given the statement and when the last row was there (`time.perf_counter`)."""
        rows, submitted_s, answered_s = self._asked({"measure": sql})["measured"]
        return rows, submitted_s, answered_s

    def measure_before(self, sql: str, following: str) -> tuple[int, float, float]:
        rows, submitted_s, answered_s = self._asked({"measure": sql}, following={"measure": following})["measured"]
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
        """From another thread: the statement that is waited for ends with a failure; without one, nothing happens."""
        if awaited := self._awaited:
            self._owner.interrupt(self._number, awaited)

    def close(self) -> None:
        """May be called twice."""
        if self._announced is not None and not self._awaited:
            self._let_go(time.monotonic() + _PATIENCE_S)
        self._end.close()

    def _let_go(self, until_s: float = math.inf) -> None:
        """Ends what was announced, and takes its answer."""
        self._announced = None
        while time.monotonic() < until_s:
            # Now and then again: DuckDB forgets an interruption that comes while it begins.
            self._owner.interrupt(self._number, self._answered + 1)
            if wait([self._end], _AGAIN_S):
                receive(self._end)
                self._answered += 1
                return

    def _asked(
        self, message: dict[str, Any], data: bytes = b"", following: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        if self._announced not in (None, message):
            self._let_go()
        announced, self._announced = self._announced, None
        self._awaited = self._answered + 1
        try:
            if announced is None:
                send(self._end, message, data)
            if following is not None:
                send(self._end, following)
                self._announced = following
            answer = receive(self._end)
            self._awaited = 0
            self._answered += 1
        except ConnectionError as error:
            self._announced = None
            raise self._owner.died() from error
        except KeyboardInterrupt:
            self._announced = None
            for request in (self._answered + 1, self._answered + 2):
                self._owner.interrupt(self._number, request)
            self._end.close()  # its answer would be taken for that to the next question
            raise
        finally:
            self._awaited = 0
        if answer is None:
            self._announced = None
            raise self._owner.died()
        told: dict[str, Any] = answer[0]
        if "refused" in told:
            refused = FailureError("DuckDB", told["refused"])
            refused.sqlstate = CANCELLED if told["kind"] == "InterruptException" else ""
            raise refused
        return told
