"""How far a lab is, and how long it will take still."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ironbench.model.lab import Lab
from ironbench.model.record import Record
from ironbench.model.system import Trial
from ironbench.plan import preliminary
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
        planned = [one for one in self._lab.trials if one.stage <= trial.stage] or [trial]
        before = preliminary.count(self._lab)
        total = before + len(planned)
        if trial.purpose == "lab":
            done = total - max(1, len(progress.missing(planned, records)))
            what = f"{trial.cell.name}, block {trial.block + 1}"
        else:
            places = {(one.purpose, one.cell.name, one.block) for one in records if one.status.comparable}
            done = min(before - 1, sum(purpose != "lab" for purpose, _, _ in places))
            what = f"{trial.purpose} of {trial.cell.name}"
        if self._done is None:
            self._done, self._began_s = done, self._now()
        again = "" if trial.attempt == 1 else f", attempt {trial.attempt}"
        left_s = (total - done) * self._each_s(trial, done - self._done)
        return f"trial {done + 1} of {total}, {spoken(left_s)} left: {what}{again}"

    def _each_s(self, trial: Trial, passed: int) -> float:
        """What a trial takes: as planned, until some have passed; the plan counts as one of them."""
        planned = len(self._lab.trials) + preliminary.count(self._lab)
        expected_s = max(span_s(trial), self._lab.estimate_s / planned if planned else 0.0)
        elapsed_s = self._now() - self._began_s if passed else 0.0
        return (expected_s + elapsed_s) / (1 + passed)


def span_s(trial: Trial) -> float:
    """What a trial takes at least."""
    return (trial.cell.load.duration_s or 0.0) + trial.cell.load.warmup_s


def spoken(seconds: float) -> str:
    """`40 s`, `12 min` or `3 h 10`, rounded to what matters to somebody who waits."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d}"
