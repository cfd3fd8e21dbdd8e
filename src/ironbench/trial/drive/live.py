"""The live state of a trial for observers of an experiment: one small file, overwritten in place about once a second.

The thread that shows progress writes the file, not a client thread. The file is neither synced nor renamed, so that
only a page of the page cache changes and nothing waits for a device. A reader may see a mixture of two states, and then
reads again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ironbench.model.system import Trial

if TYPE_CHECKING:
    from ironbench._core import Progress

_KEPT_S = 120
"""Maximum number of seconds of the window that the file contains: the latest ones."""
_PERIOD_S = 0.9
"""Minimum number of seconds between two states. Progress is polled five times a second."""
_MOST_BYTES = 1 << 16
PREPARING = "prepare"
"""Phase before the clients connect: data are restored, the engine is started, caches are filled."""
IN_TURN = "turns"
"""Phase in which the trials of an interleaved block run in turn. The metrics of these trials become available when the
block ends."""


class LiveTrial(msgspec.Struct, frozen=True):
    """The state of a trial at one moment."""

    pid: int
    at: float
    """Time of the state, in Unix seconds."""
    title: str
    """Title of the progress bar, such as `trial 7 of 24, 12 min left: log=memory, block 2`."""
    cell: str
    block: int
    purpose: str
    attempt: int
    phase: str
    """Phase of the trial: `prepare`, `turns`, or as in `Progress.phase`."""
    elapsed_s: float
    """Seconds since the window began; negative during warm-up."""
    duration_s: float | None
    clients: int
    transactions: int = 0
    failed: int = 0
    seconds: tuple[tuple[float, int, int, float | None, float | None, int], ...] = ()
    """Latest seconds of the window. For each: its length in seconds, transactions, failed transactions, mean and
    standard deviation of the response time, committed transactions of the first script."""
    first: int = 0
    """Number of the first second in `seconds`."""


_STATES = msgspec.json.Decoder(LiveTrial)
"""Created at import, because two threads that first use a type at the same time crash (msgspec 0.22, serve/app.py)."""


class LiveFile:
    """The file with the live state of an experiment. Errors while writing the file are ignored."""

    def __init__(self, directory: Path, series: str) -> None:
        self._path = place(directory, series)
        self._trial: Trial | None = None
        self._title = ""
        self._file = -1
        self._written_s = 0.0
        self._seconds: list[tuple[float, int, int, float, float, int]] = []

    def begin(self, trial: Trial, title: str) -> None:
        """Shows that a trial is being prepared."""
        self._trial, self._title, self._seconds = trial, title, []
        self._write(PREPARING, 0.0)

    def turned(self, measured_s: float) -> None:
        """Shows how long each trial of an interleaved block has been measured so far. Must be called after each
        rotation."""
        now_s = time.monotonic()
        if now_s - self._written_s >= _PERIOD_S:
            self._written_s = now_s
            self._write(IN_TURN, measured_s)

    def update(self, progress: Progress) -> None:
        """Shows the progress of a trial. Must be called a few times a second, and at the end."""
        now_s = time.monotonic()
        if self._trial is None or now_s - self._written_s < _PERIOD_S:
            return
        self._written_s = now_s
        self._seconds += progress.seconds(len(self._seconds))
        self._write(progress.phase, progress.elapsed_s, progress.transactions, progress.errors)

    def close(self) -> None:
        """Removes the file at the end of the experiment."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _write(self, phase: str, elapsed_s: float, transactions: int = 0, failed: int = 0) -> None:
        trial = self._trial
        assert trial is not None
        load, first = trial.cell.load, max(0, len(self._seconds) - _KEPT_S)
        state = LiveTrial(
            pid=os.getpid(),
            at=time.time(),
            title=self._title,
            cell=trial.cell.name,
            block=trial.block,
            purpose=trial.purpose,
            attempt=trial.attempt,
            phase=phase,
            elapsed_s=elapsed_s,
            duration_s=load.duration_s,
            clients=load.clients,
            transactions=transactions,
            failed=failed,
            seconds=tuple(self._seconds[first:]),
            first=first,
        )
        data = msgspec.json.encode(state) + b"\n"
        with contextlib.suppress(OSError):
            if self._file < 0:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
                # While this process holds the lock, others do not remove the file. If this process is killed, they do
                # (host/durable.py).
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.pwrite(self._file, data, 0)
            os.ftruncate(self._file, len(data))


def place(directory: Path, series: str) -> Path:
    """Returns the path of the file, which is in the directory of the experiment's records."""
    return directory / f".{series}.live"


def read(path: Path) -> LiveTrial | None:
    """Returns the state in the file. Returns None if there is no file, or if it is being written at this moment."""
    try:
        with path.open("rb") as file:
            return _STATES.decode(file.read(_MOST_BYTES).partition(b"\n")[0])
    except (OSError, msgspec.DecodeError):
        return None
