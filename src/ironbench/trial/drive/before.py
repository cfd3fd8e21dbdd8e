"""Everything between a running engine and the start of the stopwatch, and its verification afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from ironbench import engines, units, workloads
from ironbench.host import control_groups, quiet
from ironbench.model.note import Note, note
from ironbench.model.observation import Source
from ironbench.model.plan import Plan
from ironbench.model.purpose import AUXILIARY, Purpose
from ironbench.model.session import Session
from ironbench.model.system import Load, Setup, Trial
from ironbench.model.trial_notes import TrialNotes
from ironbench.trial.drive import caches, checkpoints
from ironbench.trial.drive.caches import CacheState, Rehearse
from ironbench.trial.load import tables

Chill = Callable[[Session], Mapping[str, str]]
"""Makes caches cold; what it did, as conditions."""
STEP_S = 0.010
"""CLOCK_MONOTONIC is slewed just as CLOCK_REALTIME is but never stepped (clock_gettime(2)), so that their difference
changes by steps alone; reading both takes less than a microsecond."""


class Clock:
    """Watches the difference of the two clocks from now on."""

    def __init__(self, offset_s: Callable[[], float] | None = None) -> None:
        self._offset_s = offset_s or _offset_s
        self._before_s = self._offset_s()

    def warnings(self) -> tuple[Note, ...]:
        """What a reader must know when the clock was set since."""
        step_s = self._offset_s() - self._before_s
        return () if abs(step_s) < STEP_S else (note("clock-step", step_s=step_s),)


def _offset_s() -> float:
    return (time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)) / 1e9


@dataclass(frozen=True, slots=True)
class Ready:
    """An engine ready for one trial."""

    sources: tuple[Source, ...]
    """What the core shall do at its times besides observing."""
    prepared: TrialNotes
    state: CacheState
    read_bytes: int | None = None
    """By the engine so far."""
    pace: Callable[[Session], object] = lambda _: None
    """Sets once more how far apart checkpoints are: a restart forgets it."""
    clock: Clock = field(default_factory=Clock)


def engine_ready(plan: Plan, session: Session, trial: Trial, rehearse: Rehearse, by_clock: bool = True) -> Ready:
    """Warm caches, statistics and checkpoints as the trial declares them. FailureError.

    What the workload must know of the state before the trial is read after this, for rehearsals change data.
    """
    system, load = plan.system, trial.cell.load
    state = _warmed(plan, session, load, rehearse)
    done = state.prepared
    if system.memory_total_bytes is not None:
        limit = f"{units.memory(system.memory_total_bytes)} by a control group ({control_groups.parent().version})"
        done = done.merge({"memory_total": limit})
    own, engine = system.dsn is None, engines.get(session.engine)
    load = checkpoints.settled(Setup(trial.cell, system, plan.choice), plan.crash).cell.load
    if trial.purpose in (Purpose.LAB, *AUXILIARY) and own:  # each isolated from the one before
        done = done.merge(engine.administration.reset_statistics(session))
    sources, conditions = checkpoints.prepared(session, load, own, by_clock)
    pace = partial(checkpoints.prepared, load=load, own=own, by_clock=by_clock)
    return Ready(sources, done.merge(conditions), state, pace=pace)


def at_last(ready: Ready, session: Session, load: Load, quiet_s: float | None, chill: Chill = caches.chill) -> Ready:
    """Right before the stopwatch: cold caches, and a quiet machine. `quiet_s` None: nobody looks. FailureError.

    Cold comes last: reading the state before the trial warms.
    """
    done, state = ready.prepared, ready.state
    if state.asked == "cold":
        done = done.merge(chill(session))
        ready.pace(session)
    if quiet_s is not None:
        done = done.merge(*quiet.wait(min(quiet_s, (load.duration_s or quiet_s) + load.warmup_s)))
    read_bytes = caches.read_bytes(session) if state.asked else None
    return replace(ready, prepared=done, read_bytes=read_bytes, clock=Clock())


def _warmed(plan: Plan, session: Session, load: Load, rehearse: Rehearse) -> CacheState:
    if not load.cache:
        return CacheState("")
    dataset = workloads.get(plan.choice.workload).dataset(session.engine, plan.choice.options)
    names = dataset.tables if dataset is not None else ()
    return caches.prepared(session, plan.system, load, names, tables.size(session, names), rehearse)


def after(ready: Ready, session: Session) -> TrialNotes:
    """What the trial showed of it: conditions and warnings of the record."""
    done = ready.prepared.merge({}, ready.clock.warnings())
    if not ready.state.asked:
        return done
    now = caches.read_bytes(session)
    read = None if now is None or ready.read_bytes is None else now - ready.read_bytes
    seen = caches.verified(ready.state, read)
    return done.merge(seen.conditions, seen.warnings)


def rehearsal(trial: Trial) -> Trial:
    """The trial's load for a while, its random numbers others than the trial's own."""
    load = trial.cell.load
    span_s = max(1.0, min(5.0, (load.duration_s or 10.0) / 5))
    short = replace(load, duration_s=span_s, transactions=None, warmup_s=0.0, seed=load.seed ^ 0x5EED)
    return replace(trial, cell=replace(trial.cell, load=short), purpose=Purpose.REHEARSAL)
