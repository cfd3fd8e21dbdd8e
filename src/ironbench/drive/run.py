"""Runs one compiled plan, where the engine's nature wants it, with a progress bar."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ironbench.model.system import Load

if TYPE_CHECKING:
    from ironbench._core import DriveResult, Progress


def run(
    plan: bytes,
    load: Load,
    in_child: bool,
    cpus: Sequence[int] | None,
    log: Path,
    show: Callable[[float, str], None],
    within: Sequence[str] = (),
    lines: Lines | None = None,
) -> DriveResult:
    """Blocks until the trial is over. A library engine runs in a child process, so that its limits are its own.

    `within` is put before the child's command.
    """
    from ironbench import _core

    progress = _core.Progress()
    with _Watched(progress, load, show, lines):
        if in_child:
            from ironbench.drive.child import drive_in_child

            return drive_in_child(plan, progress, cpus=cpus, log_path=log, within=within)
        return _core.drive(plan, progress)


class Lines:
    """A line for every so many seconds of the measured window, and of the warm-up before it, worded as pgbench's -P."""

    def __init__(self, say: Callable[[str], None], every_s: int) -> None:
        self._say = say
        self._every_s = every_s
        self._seen = 0
        """Seconds of the window looked at."""
        self._passed: list[tuple[float, int, int, float, float]] = []
        self._warmed: tuple[int, int] | None = None
        """Of the warm-up: multiples of `every_s` to come, and the transactions at the last line."""

    def look(self, progress: Progress) -> None:
        """To be called a few times a second, and at the end."""
        if progress.phase == "warmup":
            self._warm_up(progress.elapsed_s, progress.transactions)
        for second in progress.seconds(self._seen):
            self._seen += 1
            self._passed.append(second)
            if len(self._passed) == self._every_s and second[0] >= 1.0:
                self._line(self._seen, self._passed)
                self._passed = []

    def _warm_up(self, elapsed_s: float, transactions: int) -> None:
        to_come = math.ceil(-elapsed_s / self._every_s)
        if self._warmed and to_come < self._warmed[0]:
            rate = (transactions - self._warmed[1]) / (self._every_s * (self._warmed[0] - to_come))
            self._say(f"progress: {-to_come * self._every_s:.1f} s, warm-up, {rate:.1f} tps")
        if self._warmed is None or to_come < self._warmed[0]:
            self._warmed = (to_come, transactions)

    def _line(self, at_s: int, passed: Sequence[tuple[float, int, int, float, float]]) -> None:
        done = sum(second[1] for second in passed)
        failed = sum(second[2] for second in passed)
        some = [second for second in passed if second[1]]
        mean = sum(second[1] * second[3] for second in some) / done if done else 0.0
        # The variance of all together: of each second about its own mean, and of those means.
        squares = sum(second[1] * (second[4] ** 2 + (second[3] - mean) ** 2) for second in some)
        stdev = math.sqrt(squares / done) if done else 0.0
        latency = f"lat {mean * 1e3:.3f} ms stddev {stdev * 1e3:.3f}" if done else "lat - ms stddev -"
        self._say(f"progress: {at_s:.1f} s, {done / self._every_s:.1f} tps, {latency}, {failed} failed")


class _Watched:
    """Shows the progress five times a second from a thread that does nothing else."""

    def __init__(self, progress: Progress, load: Load, show: Callable[[float, str], None], lines: Lines | None) -> None:
        self._lines = lines
        self._progress = progress
        self._load = load
        self._show = show
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *exc: object) -> None:
        self._done.set()
        self._thread.join()
        if self._lines:
            self._lines.look(self._progress)

    def _watch(self) -> None:
        last, last_s, warmed = 0, 0.0, 0
        while not self._done.wait(0.2):
            done, elapsed = self._progress.transactions, self._progress.elapsed_s
            rate = (done - last) / (elapsed - last_s) if elapsed > last_s else 0.0
            last, last_s = done, elapsed
            note = f"{rate:,.0f} transactions/s" if self._progress.phase == "run" else self._progress.phase
            warmed = done if self._progress.phase in ("connect", "warmup") else warmed
            self._show(_fraction(self._load, done - warmed, elapsed), note)
            if self._lines:
                self._lines.look(self._progress)


def _fraction(load: Load, transactions: int, elapsed_s: float) -> float:
    if load.transactions is not None:
        return min(1.0, transactions / (load.transactions * load.clients))
    whole = (load.duration_s or 0.0) + load.warmup_s
    return min(1.0, max(0.0, (elapsed_s + load.warmup_s) / whole)) if whole else 0.0
