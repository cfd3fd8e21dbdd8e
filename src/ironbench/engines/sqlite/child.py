"""What runs inside the process of an SQLite line: answers one request after the other until its socket ends."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from ironbench.errors import FailureError, IronbenchError

CANCELLED = "57014"
"""SQLSTATE query_canceled, as PostgreSQL says it."""


class Served:
    """Requests bring the name of a method of the core's SqliteConnection and its arguments; the first is `open`.

    The next may come before the one ahead of it is answered. SIGINT ends the request that `cancelled` numbers.
    """

    def __init__(self, requests: Connection, core_path: str, cancelled: Callable[[], int]) -> None:
        self._requests = requests
        self._core = _core(core_path)
        self._cancelled = cancelled
        self._connection: Any = None
        self._number = 0
        self._working = False
        signal.signal(signal.SIGINT, self._signalled)

    def serve(self) -> None:
        while True:
            try:
                what, *arguments = self._requests.recv()
                self._number += 1
                try:
                    answer = ("done", self._answer(what, arguments))
                except IronbenchError as error:
                    said = (type(error).__name__, error.subject, error.cause, error.hint, error.sqlstate)
                    answer = ("error", said)
                self._requests.send(answer)
            except (EOFError, OSError):
                break
        if self._connection is not None:
            self._connection.close()

    def _answer(self, what: str, arguments: list[Any]) -> Any:
        if what == "open":
            path, pragmas, cpus = arguments
            if cpus:
                os.sched_setaffinity(0, cpus)
            self._connection = self._core.SqliteConnection(path, list(pragmas))
            return None
        try:
            self._working = True
            self._signalled()  # it may have been cancelled before it began
            return getattr(self._connection, what)(*arguments)
        except KeyboardInterrupt:
            cancelled = FailureError("statement", "it was cancelled")
            cancelled.sqlstate = CANCELLED
            raise cancelled from None
        finally:
            self._working = False

    def _signalled(self, *_: object) -> None:
        if self._working and self._cancelled() == self._number:
            self._working = False  # once is enough
            raise KeyboardInterrupt


def _core(path: str) -> Any:
    """`ironbench._core` from its file."""
    spec = importlib.util.spec_from_file_location("ironbench._core", path)
    assert spec is not None and spec.loader is not None
    core = importlib.util.module_from_spec(spec)
    sys.modules["ironbench._core"] = core
    spec.loader.exec_module(core)
    return core
