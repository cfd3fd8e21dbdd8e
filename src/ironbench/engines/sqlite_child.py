"""What runs inside the process of an SQLite line: answers one request after the other until its socket ends."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from ironbench.errors import FailureError, IronbenchError

CANCELLED = "57014"
"""SQLSTATE query_canceled, as PostgreSQL says it."""


def serve(requests: Connection, core_path: str) -> None:
    """`requests` bring the name of a method of the core's SqliteConnection and its arguments; first of all `open`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    core = _core(core_path)
    connection = None
    while True:
        try:
            what, *arguments = requests.recv()
        except (EOFError, OSError):
            break
        try:
            if what == "open":
                path, pragmas, cpus = arguments
                if cpus:
                    os.sched_setaffinity(0, cpus)
                connection = core.SqliteConnection(path, list(pragmas))
                answer: Any = ("done", None)
            else:
                answer = ("done", _answered(getattr(connection, what), arguments))
        except IronbenchError as error:
            said = (type(error).__name__, error.subject, error.cause, error.hint, getattr(error, "sqlstate", ""))
            answer = ("error", said)
        requests.send(answer)
    if connection is not None:
        connection.close()


def _answered(method: Any, arguments: list[Any]) -> Any:
    """SIGINT ends a statement, and nothing but a statement."""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return method(*arguments)
    except KeyboardInterrupt:
        cancelled = FailureError("statement", "it was cancelled")
        cancelled.sqlstate = CANCELLED
        raise cancelled from None
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _core(path: str) -> Any:
    """`ironbench._core` from its file."""
    spec = importlib.util.spec_from_file_location("ironbench._core", path)
    assert spec is not None and spec.loader is not None
    core = importlib.util.module_from_spec(spec)
    sys.modules["ironbench._core"] = core
    spec.loader.exec_module(core)
    return core
