"""A connection to an SQLite file in a process of its own, for queries that are timed one by one.

Its limits are the engine's, and what it does to itself it does not do to us.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from typing import Any

from ironbench.errors import FailureError
from ironbench.host import line
from ironbench.host.child import Channel, Child, answer


class SqliteLine(line.ChildChannel):
    """Our end."""

    def __init__(self, path: str, pragmas: Sequence[str], within: Sequence[str] = (), cpus: Sequence[int] = ()) -> None:
        """`within`: put before the child's command; `cpus`: where it runs. FailureError: the file cannot be used."""
        self.child = Child(__name__, "SQLite's process", within=within)
        super().__init__(self.child, self._dead)
        try:
            if not self.child.ask({"path": path, "pragmas": list(pragmas), "cpus": list(cpus)}):
                raise self._dead()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        super().close()
        self.child.stop(line.PATIENCE_S)

    def _dead(self) -> FailureError:
        return self.child.died("in the middle of a statement", patience_s=1.0)


def main(parent: Channel) -> None:
    """The child's end."""
    frame = parent.receive()
    if frame is None:
        return
    from ironbench import _core

    begin = frame[0]
    if begin["cpus"]:
        os.sched_setaffinity(0, begin["cpus"])
    connection = _core.SqliteConnection(begin["path"], begin["pragmas"])

    def done(message: dict[str, Any], data: bytes) -> dict[str, Any]:
        if "measure" in message:
            return {"measured": connection.measure(message["measure"])}
        if "copy" in message:
            return {"copied": connection.copy_in(message["copy"], data)}
        rows = connection.query(message["query"])
        return {"rows": rows, "columns": connection.columns()}

    ours = threading.main_thread().ident or 0
    served = line.Served(parent, done, lambda: signal.pthread_kill(ours, signal.SIGINT))
    # The connection ends a statement when a signal is raised in the thread that waits for it.
    signal.signal(signal.SIGINT, served.raise_cancelled)
    answer(parent, {"open": True})
    served.serve()
    connection.close()
