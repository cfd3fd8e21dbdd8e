"""How far a lab is, and how long it will take still."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from ironbench.model.lab import Lab
from ironbench.model.record import Record
from ironbench.model.system import Trial
from ironbench.plan import blocks
from ironbench.record import progress

_BORNE = 1.1
"""Times the budget: a plan is no better than that."""


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
        before = blocks.trials_before(self._lab)
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
        planned = len(self._lab.trials) + blocks.trials_before(self._lab)
        expected_s = max(span_s(trial), self._lab.estimate_s / planned if planned else 0.0)
        elapsed_s = self._now() - self._began_s if passed else 0.0
        return (expected_s + elapsed_s) / (1 + passed)


class Allowance:
    """Whether more trials fit in the budget, at the pace of those that have passed. `now` gives seconds that grow."""

    def __init__(self, budget_s: float | None, now: Callable[[], float] = time.monotonic) -> None:
        self._budget_s = budget_s
        self._now = now
        self._began_s = self._ready_s = now()
        self.passed = 0
        """Trials so far."""
        self.said = ""
        """Why the lab ends, once it does."""

    def ready(self) -> None:
        """The data are loaded: what came before is spent, and says nothing about the pace of trials."""
        self._ready_s = self._now()

    def left_s(self, planned_s: float) -> float:
        """What trials that will take `planned_s` leave of the budget for waiting, at least 0; endless without one."""
        if self._budget_s is None:
            return math.inf
        return max(0.0, _BORNE * self._budget_s - (self._now() - self._began_s) - planned_s)

    def holds(self, trials: int) -> bool:
        if self._budget_s is None or not self.passed:
            return True
        spent_s = self._now() - self._began_s
        needed_s = trials * (self._now() - self._ready_s) / self.passed
        if spent_s + needed_s <= _BORNE * self._budget_s:
            return True
        self.said = (
            f"the budget of {spoken(self._budget_s)} ends the lab at this look, after {spoken(spent_s)}: the next "
            f"blocks would take {spoken(needed_s)}; `ironbench lab resume` goes on with them"
        )
        return False


def span_s(trial: Trial) -> float:
    """What a trial takes at least."""
    return (trial.cell.load.duration_s or 0.0) + trial.cell.load.warmup_s


def spoken(seconds: float) -> str:
    """`40 s`, `12 min` or `3 h 10`, rounded to what matters to somebody who waits."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d}"
