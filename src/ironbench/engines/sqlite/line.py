"""A connection to an SQLite file in a process of its own, for queries that are timed one by one.

`python -I -S` runs the other end. A socket joins both: its end of file means that we are gone, and then the child goes
too. Its limits are the engine's, and what it does to itself it does not do to us.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ironbench import errors
from ironbench.errors import EngineDiedError
from ironbench.model.session import Row

_PATIENCE_S = 10.0
NUMBER = struct.Struct("<Q")
"""The memory that both ends share: which request is to be cancelled. They are numbered from 1."""


class SqliteLine:
    """Our end. One request at a time; `cancel` may come from any thread."""

    def __init__(self, path: str, pragmas: Sequence[str], within: Sequence[str] = (), cpus: Sequence[int] = ()) -> None:
        """`within`: put before the child's command; `cpus`: where it runs. FailureError: the file cannot be used."""
        from ironbench import _core

        ours, theirs = socket.socketpair()
        source = str(Path(__file__).resolve().parents[3])
        code = f"import sys; sys.path.insert(0, {source!r}); import ironbench.engines.sqlite.line as line; line.main()"
        shared = os.memfd_create("cancelled")
        os.truncate(shared, NUMBER.size)
        self._cancelled = mmap.mmap(shared, NUMBER.size)
        with theirs, os.fdopen(shared, "rb"):
            self._process = subprocess.Popen(
                [*within, sys.executable, "-I", "-S", "-c", code, _core.__file__, str(shared)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                pass_fds=[shared],
                start_new_session=True,  # Ctrl-C in our terminal is ours alone
                cwd="/",
            )
        self._socket = Connection(ours.detach())
        self._asking = threading.Lock()
        self._cancelling = threading.Lock()
        self._awaited = 0
        """Number of the request that is waited for; 0: none is. Cleared before `_answered` grows, and read once by
        whoever cancels: what is announced behind it is never meant."""
        self._answered = 0
        self._announced: tuple[Any, ...] | None = None
        """Sent already, and not yet asked for."""
        try:
            self._ask("open", path, tuple(pragmas), tuple(cpus))
        except BaseException:
            self.close()
            raise

    def measure(self, sql: str) -> tuple[int, float, float]:
        rows, submitted_s, answered_s = self._ask("measure", sql)
        return rows, submitted_s, answered_s

    def measure_before(self, sql: str, following: str) -> tuple[int, float, float]:
        rows, submitted_s, answered_s = self._ask("measure", sql, following=("measure", following))
        return rows, submitted_s, answered_s

    def query(self, sql: str) -> list[Row]:
        rows: list[Row] = self._ask("query", sql)
        return rows

    def columns(self) -> list[str]:
        names: list[str] = self._ask("columns")
        return names

    def copy_in(self, sql: str, data: bytes) -> int:
        return int(self._ask("copy_in", sql, data))

    def cancel(self) -> None:
        """What is waited for ends with SQLSTATE 57014; between two requests nothing happens."""
        if awaited := self._awaited:
            self._cancel(awaited)

    def close(self) -> None:
        """May be called twice."""
        if not self._awaited:
            with contextlib.suppress(EOFError, OSError):
                self._let_go(_PATIENCE_S)
        self._socket.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _ask(self, *request: Any, following: tuple[Any, ...] | None = None) -> Any:
        with self._asking:
            try:
                if self._announced != request:
                    self._let_go()
                    self._socket.send(request)
                self._announced = None
                self._awaited = self._answered + 1
                if following is not None:
                    self._socket.send(following)
                    self._announced = following
                kind, answer = self._socket.recv()
                self._awaited = 0
                self._answered += 1
            except (EOFError, OSError) as error:
                self._announced = None
                raise self._death() from error
            except KeyboardInterrupt:
                self._announced = None
                self._cancel(self._answered + 1)
                self._socket.close()  # its answer would be taken for that to the next request
                raise
            finally:
                self._awaited = 0
        if kind == "error":
            name, subject, cause, hint, sqlstate = answer
            raised = getattr(errors, name)(subject, cause, hint)
            raised.sqlstate = sqlstate
            raise raised
        return answer

    def _cancel(self, request: int) -> None:
        """The request of that number, whether the child has begun it or not; one that is answered stays as it is."""
        with self._cancelling:
            # A thread that comes late with an earlier number takes back nothing.
            NUMBER.pack_into(self._cancelled, 0, max(request, *NUMBER.unpack_from(self._cancelled)))
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGINT)

    def _let_go(self, patience_s: float | None = None) -> None:
        """Ends what was announced, and takes its answer. EOFError, OSError: the child is gone.

        With a patience, a child that does not answer is left to whoever ends it: no request may follow.
        """
        if self._announced is not None:
            self._announced = None
            self._cancel(self._answered + 1)
            if self._socket.poll(patience_s):
                self._socket.recv()
                self._answered += 1

    def _death(self) -> EngineDiedError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        code = self._process.poll()
        how = "does not answer" if code is None else f"ended with exit code {code}"
        if code is not None and code < 0:
            how = f"was ended by {signal.Signals(-code).name}"
        return EngineDiedError("SQLite's process", f"it {how} in the middle of a statement")


def main() -> None:
    """The child's end."""
    from ironbench.engines.sqlite.child import Served

    shared = mmap.mmap(int(sys.argv[2]), NUMBER.size, prot=mmap.PROT_READ)
    Served(Connection(os.dup(0)), sys.argv[1], lambda: int(NUMBER.unpack_from(shared)[0])).serve()
