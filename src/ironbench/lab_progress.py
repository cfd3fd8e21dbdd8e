"""How far a lab is, and how long it will take still."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ironbench.model.lab import Lab
from ironbench.model.record import Record
from ironbench.model.system import Trial
from ironbench.record import progress


class Pace:
    """Counts trials while they pass. `now` gives seconds that only grow."""

    def __init__(self, lab: Lab, now: Callable[[], float] = time.monotonic) -> None:
        self._lab = lab
        self._now = now
        self._began_s = 0.0
        self._done: int | None = None

    def title(self, trial: Trial, records: Sequence[Record]) -> str:
        """`trial 7 of 24, 12 min left: log=memory, block 2`"""
        if trial.purpose != "lab":
            return f"{trial.purpose} of {trial.cell.name}, {spoken(span_s(trial))}"
        planned = [one for one in self._lab.trials if one.stage <= trial.stage] or [trial]
        left = len(progress.missing(planned, records))
        done = len(planned) - left
        if self._done is None:
            self._done, self._began_s = done, self._now()
        each_s = span_s(trial)
        if done > self._done:
            each_s = (self._now() - self._began_s) / (done - self._done)
        again = "" if trial.attempt == 1 else f", attempt {trial.attempt}"
        return (
            f"trial {done + 1} of {len(planned)}, {spoken(left * each_s)} left: "
            f"{trial.cell.name}, block {trial.block + 1}{again}"
        )


def span_s(trial: Trial) -> float:
    """What a trial takes at least."""
    return (trial.cell.load.duration_s or 0.0) + trial.cell.load.warmup_s


def spoken(seconds: float) -> str:
    """`40 s`, `12 min` or `3 h 10`, rounded to what matters to somebody who waits."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d}"
