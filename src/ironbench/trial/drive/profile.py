"""Samples the stacks of engine and client during a trial (`--profile`)."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ironbench import _core, engines
from ironbench.model.plan import Plan
from ironbench.model.profile import SampledProfile, SampledStack, printable, stack_text
from ironbench.model.profile_request import ProfileRequest
from ironbench.model.purpose import AUXILIARY, Purpose
from ironbench.model.session import Session
from ironbench.model.system import Trial

if TYPE_CHECKING:
    from ironbench._core import Profile, Profiler


def of_trial(plan: Plan, trial: Trial) -> ProfileRequest | None:
    """Returns the stacks to sample in this trial. Trials that are not part of any result are not profiled."""
    return None if trial.purpose in (*AUXILIARY, Purpose.REHEARSAL) else plan.profile


def started(request: ProfileRequest, session: Session, elsewhere: bool = False) -> Profiler:
    """Returns a sampler that runs until it is stopped or deleted. Raises FailureError if the kernel refuses.

    `elsewhere`: whether the engine runs on another machine, so that only the client is sampled.
    """
    profiler = _core.Profiler(request.kinds, request.hz, () if elsewhere else roots(session))
    profiler.start()
    return profiler


def roots(session: Session) -> Sequence[int]:
    """Returns the engine's first processes. The stacks of these processes and of their descendants are sampled as the
    engine's.

    An engine without its own process runs in ironbench's threads and child processes, so these are sampled instead.
    """
    engine = engines.get(session.engine)
    if engine.traits.in_process or engine.can("in client") or engine.can("bare machine"):
        return [os.getpid()]
    return list(session.processes())


def stopped(profiler: Profiler, summary: Mapping[str, Any]) -> SampledProfile | None:
    """Stops sampling and returns the samples of the measured window. Returns None if the trial had no window. Must be
    called right after the window: the start of the window is a time of day, which is converted by the present
    difference of the clocks."""
    elapsed_s = float(summary.get("elapsed_s") or 0.0)
    if elapsed_s <= 0:
        return None
    began_s = float(summary["started_unix_s"]) - (time.time() - time.monotonic())
    return collected(profiler.stop([window(began_s, elapsed_s)]))


def collected(profile: Profile) -> SampledProfile:
    """Returns the samples of the core."""
    texts = ((stack_text(one.split(";")) for one in column) for column in (profile.stack, profile.waker))
    columns = (profile.kind, profile.role, map(printable, profile.thread), profile.reason)
    stacks = tuple(map(SampledStack, *columns, *texts, profile.samples, profile.seconds))
    return SampledProfile(stacks, profile.sampler_cpu_s, profile.unresolved_share, profile.lost)


def window(began_s: float, length_s: float) -> tuple[int, int]:
    """Returns the start and the end of a window in nanoseconds of CLOCK_MONOTONIC. `began_s`: as `time.monotonic`."""
    return round(began_s * 1e9), round((began_s + length_s) * 1e9)
