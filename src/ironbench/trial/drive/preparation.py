"""Prepares a running engine for the measured window, and verifies the preparation afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from ironbench import engines, units, workloads
from ironbench.host import control_groups, idle_machine
from ironbench.model.note import Note, note
from ironbench.model.observation import Source
from ironbench.model.plan import Plan
from ironbench.model.purpose import AUXILIARY, Purpose
from ironbench.model.session import DelayedSession, Session
from ironbench.model.system import Load, Trial
from ironbench.model.trial_notes import TrialNotes
from ironbench.trial.drive import caches, checkpoints
from ironbench.trial.drive.caches import CacheState, Rehearse
from ironbench.trial.load import tables

DropCaches = Callable[[Session], Mapping[str, str]]
"""Function that empties the caches and returns what was done, as conditions of the trial."""
STEP_S = 0.010
"""Smallest change of the difference between CLOCK_REALTIME and CLOCK_MONOTONIC, in seconds, that counts as a step of
CLOCK_REALTIME. Both clocks are slewed equally, but CLOCK_MONOTONIC is never stepped (clock_gettime(2)), so only a step
changes the difference. Reading both clocks takes less than a microsecond."""


class ClockStepDetector:
    """Detects whether CLOCK_REALTIME was set after the object was created. Compares the difference between
    CLOCK_REALTIME and CLOCK_MONOTONIC then and now."""

    def __init__(self, offset_s: Callable[[], float] | None = None) -> None:
        self._offset_s = offset_s or _offset_s
        self._before_s = self._offset_s()

    def warnings(self) -> tuple[Note, ...]:
        """Returns a warning if the clock was set in the meantime."""
        step_s = self._offset_s() - self._before_s
        return () if abs(step_s) < STEP_S else (note("clock-step", step_s=step_s),)


def _offset_s() -> float:
    return (time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)) / 1e9


@dataclass(frozen=True, slots=True)
class ReadyEngine:
    """An engine that is ready for a trial."""

    sources: tuple[Source, ...]
    """Actions that the core performs at fixed times, in addition to sampling."""
    prepared: TrialNotes
    state: CacheState
    read_bytes: int | None = None
    """Number of bytes that the engine had read from devices when the preparation was complete. None if unknown."""
    pace: Callable[[Session], object] = lambda _: None
    """Function that sets the interval of checkpoints again, because a restart resets it."""
    clock: ClockStepDetector = field(default_factory=ClockStepDetector)


def prepare_engine(
    plan: Plan, session: Session, trial: Trial, rehearse: Rehearse, by_clock: bool = True
) -> ReadyEngine:
    """Prepares warm caches, statistics and checkpoints as the trial declares them. Raises FailureError.

    The workload must read the initial state of its data after this call, because rehearsals change data.
    """
    system, load = plan.system, trial.cell.load
    state = _warmed(plan, session, load, rehearse)
    done = state.prepared
    if system.memory_total_bytes is not None:
        limit = f"{units.memory(system.memory_total_bytes)} by a control group ({control_groups.parent().version})"
        done = done.merge({"memory_total": limit})
    if system.latency_s is not None and isinstance(session, DelayedSession):
        kind = "Unix socket" if session.on_socket else "TCP"
        done = done.merge({"latency": f"{units.span(system.latency_s)} per round trip, by a relay over {kind}"})
    own, engine = system.dsn is None, engines.get(session.engine)
    every_s = checkpoints.interval_s(system, plan.choice, load, plan.crash)
    if trial.purpose in (Purpose.LAB, *AUXILIARY) and own:  # so that the trial is not affected by the previous one
        done = done.merge(engine.administration.reset_statistics(session))
    sources, conditions = checkpoints.prepared(session, every_s, own, by_clock)
    pace = partial(checkpoints.prepared, every_s=every_s, own=own, by_clock=by_clock)
    return ReadyEngine(sources, done.merge(conditions), state, pace=pace)


def finished(
    ready: ReadyEngine, session: Session, load: Load, quiet_s: float | None, drop_caches: DropCaches = caches.drop
) -> ReadyEngine:
    """Finishes the preparation directly before the measured window. Empties the caches if the trial is cold, and then
    waits until the machine is idle. Raises FailureError.

    `quiet_s`: maximum number of seconds to wait, or None for no wait. Caches are emptied this late because earlier
    steps of the preparation read data, which fills caches.
    """
    done, state = ready.prepared, ready.state
    if state.asked == "cold":
        done = done.merge(drop_caches(session))
        ready.pace(session)
    if quiet_s is not None:
        done = done.merge(*idle_machine.wait(min(quiet_s, (load.duration_s or quiet_s) + load.warmup_s)))
    read_bytes = caches.read_bytes(session) if state.asked else None
    return replace(ready, prepared=done, read_bytes=read_bytes, clock=ClockStepDetector())


def _warmed(plan: Plan, session: Session, load: Load, rehearse: Rehearse) -> CacheState:
    if not load.cache:
        return CacheState("")
    dataset = workloads.get(plan.choice.workload).dataset(session.engine, plan.choice.options)
    names = dataset.tables if dataset is not None else ()
    return caches.prepared(session, plan.system, load, names, tables.size(session, names), rehearse)


def verified(ready: ReadyEngine, session: Session) -> TrialNotes:
    """Returns conditions and warnings about the preparation that are known only after the trial."""
    done = ready.prepared.merge({}, ready.clock.warnings())
    if not ready.state.asked:
        return done
    now = caches.read_bytes(session)
    read = None if now is None or ready.read_bytes is None else now - ready.read_bytes
    seen = caches.verified(ready.state, read)
    return done.merge(seen.conditions, seen.warnings)


def rehearsal(trial: Trial) -> Trial:
    """Returns a short trial that is not measured, with the same load. Its purpose gives it different random numbers."""
    load = trial.cell.load
    span_s = max(1.0, min(5.0, (load.duration_s or 10.0) / 5))
    short = replace(load, duration_s=span_s, transactions=None, warmup_s=0.0)
    return replace(trial, cell=replace(trial.cell, load=short), purpose=Purpose.REHEARSAL)
