"""Shows the progress of a lab and estimates the remaining time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from statistics import median

from ironbench import units
from ironbench.model.lab import Lab
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record
from ironbench.model.system import Trial
from ironbench.plan import blocks
from ironbench.records import progress

TOLERATED = 1.1
"""Maximum time of a lab as a multiple of its budget. The value is above 1 because estimates of time are imprecise, and
because a plan uses the whole budget and leaves no time for waits."""


class Pace:
    """Measures the time of trials. `now` returns monotonic seconds."""

    def __init__(self, lab: Lab, now: Callable[[], float] = time.monotonic) -> None:
        self._lab = lab
        self._now = now
        self._took: list[tuple[tuple[str, str], float]] = []
        """Purpose, configuration and time in seconds of each finished trial. The time of interleaved trials is divided
        equally among them."""
        self._current: tuple[tuple[str, str], float] | None = None
        """Purpose, configuration and start time of the current trial."""
        self._before = 0
        """Number of records when the current trial started."""
        self.remaining_text = ""
        """Estimated time until the next interim analysis, in words. The current trial is included."""

    def title(self, trial: Trial, records: Sequence[Record]) -> str:
        """Returns a title such as `trial 7 of 24, 12 min left: log=memory, block 2`."""
        stage = max([trial.stage, *(one.stage for one in records)])
        planned = [one for one in self._lab.trials if one.stage <= stage] or [trial]
        before, observing = blocks.trials_before(self._lab), trial.purpose == Purpose.OBSERVED
        looks_again = not observing and any(one.number > stage for one in self._lab.method.stages)
        after = [] if looks_again else blocks.observed_trials(self._lab)
        seen = {one.cell.name for one in records if one.purpose == Purpose.OBSERVED and one.status.comparable}
        unobserved = tuple(one for one in after if one.cell.name not in seen)
        total = before + len(planned) + len(after)
        waiting: tuple[Trial, ...]
        if trial.purpose == Purpose.LAB:
            waiting = (*(progress.missing(planned, records) or (trial,)), *unobserved)
            done = total - len(waiting)
            what = f"{trial.cell.name}, block {trial.block + 1}"
        elif observing:
            waiting, what = unobserved, f"{trial.cell.name}, observed"
            done = total - len(waiting)
        else:
            places = {(one.purpose, one.cell.name, one.block) for one in records if one.status.comparable}
            done = min(before - 1, sum(purpose != Purpose.LAB for purpose, _, _ in places))
            waiting = (trial,) * (total - done)
            what = f"{trial.purpose} of {trial.cell.name}"
        if self._current is not None:
            kind, began_s = self._current
            passed = [(one.purpose, one.cell.name) for one in records[self._before :]] or [kind]
            self._took += [(one, (self._now() - began_s) / len(passed)) for one in passed]
        self._current, self._before = (_kind(trial), self._now()), len(records)
        until = " until the next interim analysis" if looks_again else ""
        self.remaining_text = f"{units.span(sum(map(self._expected_s, waiting)))} left{until}"
        again = "" if trial.attempt == 1 else f", attempt {trial.attempt}"
        return f"trial {done + 1} of {total}, {self.remaining_text}: {what}{again}"

    def _expected_s(self, trial: Trial) -> float:
        """Estimates a trial's time from the plan and the median of similar finished trials.

        Uses all finished trials if there are no similar ones. The first trials also load the data, which would distort
        a mean.
        """
        planned = len(self._lab.trials) + blocks.trials_before(self._lab) + len(blocks.observed_trials(self._lab))
        least_s = max(span_s(trial), self._lab.estimate_s / planned if planned else 0.0)
        own = [took_s for kind, took_s in self._took if kind == _kind(trial)]
        return median([least_s, *(own or [took_s for _, took_s in self._took])])


def _kind(trial: Trial) -> tuple[str, str]:
    return trial.purpose, trial.cell.name


class Allowance:
    """Decides whether more trials fit in the budget. The decision assumes that they take as long as the finished
    trials. `now` returns monotonic seconds. `spent_s`: seconds of the budget that were spent earlier.
    """

    def __init__(self, budget_s: float | None, now: Callable[[], float] = time.monotonic, spent_s: float = 0.0) -> None:
        self._budget_s = budget_s
        self._now = now
        self._ready_s = now()
        self._began_s = self._ready_s - spent_s
        self.passed = 0
        """Number of finished trials."""
        self.reason = ""
        """Why the lab ends; empty while it may continue."""

    def ready(self) -> None:
        """Must be called when loading has ended. The time of loading is part of the budget, but not of the mean time
        per trial."""
        self._ready_s = self._now()

    def left_s(self, planned_s: float) -> float:
        """Returns how many seconds of the budget are left for waits if the remaining trials take `planned_s`. Returns 0
        if none are left. Returns infinity if there is no budget."""
        if self._budget_s is None:
            return math.inf
        return max(0.0, TOLERATED * self._budget_s - (self._now() - self._began_s) - planned_s)

    def fits(self, trials: int) -> bool:
        if self._budget_s is None or not self.passed:
            return True
        # The decision is final. Trials with observers have run since then, so the mean time of the trials of blocks is
        # no longer known.
        if self.reason:
            return False
        spent_s = self._now() - self._began_s
        needed_s = trials * (self._now() - self._ready_s) / self.passed
        if spent_s + needed_s <= TOLERATED * self._budget_s:
            return True
        self.reason = (
            f"the lab ends at this interim analysis, after {units.span(spent_s)}, because the next blocks would take "
            f"{units.span(needed_s)} and exceed the budget of {units.span(self._budget_s)}; `ironbench lab "
            "resume` continues with these blocks"
        )
        return False


def span_s(trial: Trial) -> float:
    """Returns the minimum number of seconds that a trial takes."""
    return (trial.cell.load.duration_s or 0.0) + trial.cell.load.warmup_s
