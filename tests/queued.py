"""Substitutes for a clock and for the processes of queued labs."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from pathlib import Path

from ironbench.host import processes
from ironbench.host.processes import ProcessId
from ironbench.serve.queue import Queue
from ironbench.serve.queue_entry import QueueEntry, QueueRequest

NOON = datetime(2026, 11, 25, 12, 0).timestamp()


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


class Labs:
    """Substitute for processes, each of which lives until it is ended."""

    def __init__(self, results: Path) -> None:
        self.results = results
        self.begun: list[QueueEntry] = []
        self._living: list[subprocess.Popen[bytes]] = []

    def begin(self, entry: QueueEntry, lock: int) -> ProcessId:
        self.begun.append(entry)
        self._living.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], pass_fds=[lock]))
        found = processes.identify(self._living[-1].pid)
        assert found is not None
        return found

    def end(self, status: int | None) -> None:
        """Ends the latest process. `status`: its exit status; None: the process is killed together with the shell that
        would have recorded the status."""
        folder = self.results / "queue" / self.begun[-1].id
        folder.mkdir(exist_ok=True)
        if status is not None:
            (folder / "status").write_text(f"{status}\n")
        self._living[-1].kill()
        self._living[-1].wait()

    def close(self) -> None:
        for one in self._living:
            one.kill()
            one.wait()


def states(queue: Queue) -> list[tuple[str, str]]:
    return [(one.name, one.state) for one in queue.entries()]


def put(queue: Queue, name: str, **more: object) -> QueueEntry:
    return queue.put(QueueRequest(name, "question = 'x'\n", **more))  # type: ignore[arg-type]
