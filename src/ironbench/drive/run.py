"""Runs one compiled plan, where the engine's nature wants it, with a progress bar."""

from __future__ import annotations

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
) -> DriveResult:
    """Blocks until the trial is over. A library engine runs in a child process, so that its limits are its own.

    `within` is put before the child's command.
    """
    from ironbench import _core

    progress = _core.Progress()
    with _Watched(progress, load, show):
        if in_child:
            from ironbench.drive.child import drive_in_child

            return drive_in_child(plan, progress, cpus=cpus, log_path=log, within=within)
        return _core.drive(plan, progress)


class _Watched:
    """Shows the progress five times a second from a thread that does nothing else."""

    def __init__(self, progress: Progress, load: Load, show: Callable[[float, str], None]) -> None:
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

    def _watch(self) -> None:
        last, last_s = 0, 0.0
        while not self._done.wait(0.2):
            done, elapsed = self._progress.transactions, self._progress.elapsed_s
            rate = (done - last) / (elapsed - last_s) if elapsed > last_s else 0.0
            last, last_s = done, elapsed
            note = f"{rate:,.0f} transactions/s" if self._progress.phase == "run" else self._progress.phase
            self._show(_fraction(self._load, done, elapsed), note)


def _fraction(load: Load, transactions: int, elapsed_s: float) -> float:
    if load.transactions is not None:
        return min(1.0, transactions / (load.transactions * load.clients))
    whole = (load.duration_s or 0.0) + load.warmup_s
    return min(1.0, max(0.0, (elapsed_s + load.warmup_s) / whole)) if whole else 0.0
