"""A connection to an SQLite file in its own child process. The connection is used for queries that are timed
individually.

The limits of the engine apply to the process. A crash in the process does not affect ironbench.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from typing import Any

from ironbench.errors import FailureError
from ironbench.host import child_connection
from ironbench.host.child import Channel, Child, answer


class SqliteLine(child_connection.ChildChannel):
    """The parent's end of the connection."""

    def __init__(self, path: str, pragmas: Sequence[str], within: Sequence[str] = (), cpus: Sequence[int] = ()) -> None:
        """Starts the child process. `within`: prefix of the process's command. `cpus`: CPUs on which the process runs.
        Raises FailureError if the file cannot be used."""
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
        self.child.stop(child_connection.PATIENCE_S)

    def _dead(self) -> FailureError:
        return self.child.died("in the middle of a statement", patience_s=1.0)


def main(parent: Channel) -> None:
    """Entry point of the child process."""
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
    served = child_connection.Served(parent, done, lambda: signal.pthread_kill(ours, signal.SIGINT))
    # A signal interrupts the waiting thread. The connection then cancels its statement.
    signal.signal(signal.SIGINT, served.raise_cancelled)
    answer(parent, {"open": True})
    served.serve()
    connection.close()
