"""What a trial shows while it runs: one small file, overwritten in place about once a second, for whoever looks.

The thread that shows progress writes it, never one that drives. It is neither synced nor renamed: a page of cache
changes, and nothing of it waits for a device. A reader may see half of two states, and reads again.
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
"""Seconds of the window that the file holds: the last ones."""
_PERIOD_S = 0.9
"""Least time between two states; progress is looked at five times a second."""
_MOST_BYTES = 1 << 16
PREPARING = "prepare"
"""Phase before the clients connect: data restored, engine started, caches filled."""
IN_TURN = "turns"
"""Phase of a block by slices, which belongs to several trials at once: their figures come when it is over."""


class LiveTrial(msgspec.Struct, frozen=True):
    """Of one trial, at one moment."""

    pid: int
    at: float
    """Seconds since the epoch."""
    title: str
    """As the progress bar has it, e.g. `trial 7 of 24, 12 min left: log=memory, block 2`."""
    cell: str
    block: int
    purpose: str
    attempt: int
    phase: str
    """`prepare`, `turns`, or as in `Progress.phase`."""
    elapsed_s: float
    """Since the window began; negative during warm-up."""
    duration_s: float | None
    clients: int
    transactions: int = 0
    failed: int = 0
    seconds: tuple[tuple[float, int, int, float | None, float | None], ...] = ()
    """Width, transactions, failed, mean and standard deviation of the response time; the last ones of the window."""
    first: int = 0
    """Number of the first of `seconds`."""


_STATES = msgspec.json.Decoder(LiveTrial)
"""Made once, at import: two threads that use a type for the first time at once crash (msgspec 0.22, serve/app.py)."""


class Live:
    """The file of one experiment. What cannot be written is not shown, and nothing else."""

    def __init__(self, directory: Path, series: str) -> None:
        self._path = place(directory, series)
        self._trial: Trial | None = None
        self._title = ""
        self._file = -1
        self._written_s = 0.0
        self._seconds: list[tuple[float, int, int, float, float]] = []

    def begin(self, trial: Trial, title: str) -> None:
        """A trial is being prepared."""
        self._trial, self._title, self._seconds = trial, title, []
        self._write(PREPARING, 0.0)

    def turned(self, measured_s: float) -> None:
        """Of a block by slices: so much of each trial is measured. To be called after each rotation."""
        now_s = time.monotonic()
        if now_s - self._written_s >= _PERIOD_S:
            self._written_s = now_s
            self._write(IN_TURN, measured_s)

    def look(self, progress: Progress) -> None:
        """To be called a few times a second, and at the end."""
        now_s = time.monotonic()
        if self._trial is None or now_s - self._written_s < _PERIOD_S:
            return
        self._written_s = now_s
        self._seconds += progress.seconds(len(self._seconds))
        self._write(progress.phase, progress.elapsed_s, progress.transactions, progress.errors)

    def close(self) -> None:
        """The experiment is over: nothing is left of it."""
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
                # Held like all that is unfinished: of a killed process it is removed with the rest (record/durable.py).
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.pwrite(self._file, data, 0)
            os.ftruncate(self._file, len(data))


def place(directory: Path, series: str) -> Path:
    """Of the file, beside the records of the experiment."""
    return directory / f".{series}.live"


def read(path: Path) -> LiveTrial | None:
    """None: there is none, or it is just being written."""
    try:
        with path.open("rb") as file:
            return _STATES.decode(file.read(_MOST_BYTES).partition(b"\n")[0])
    except (OSError, msgspec.DecodeError):
        return None
