"""Divides the wait classes of a transaction's time further: by wait events, and by functions of the profile.

The time of a wait class is known from the kernel's counters and from samples of wait events (`bottleneck`). The samples
also contain the event itself, so the time of a class is divided among its events in proportion to their samples.
Profiles contain the functions that used the CPU or waited. An activity of the engine (`Engine.profile_waits`) connects
the wait of a function with a wait class. Both divisions add up to the time of the class: the rest is a separate part,
which for functions also contains the time that the profile lacks. A profile may also contain more time than the class,
for example CPU time of background processes, or because both are samples. The times of the functions are then reduced
in proportion, so that they add up to the class.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ironbench.catalogue import base_name, part_of
from ironbench.model.finding import LEAST_BLOCKS_SHOWN
from ironbench.model.note import Note, note
from ironbench.model.observer import CPU, IDLE, OTHER_PROGRAMS, RUN_QUEUE
from ironbench.model.profile import BLOCKED, CPU_QUEUE, ENGINE, KERNEL_MARK, SampledStack
from ironbench.model.record import Record
from ironbench.records.described import profile_groups, profile_waits, wait_class
from ironbench.study.archive import Archive
from ironbench.study.bottleneck import RESOURCES, TimeSpent, observed_trials, times
from ironbench.study.comparability import complete_blocks
from ironbench.study.profile_groups import activity_of, deciding_function, in_transaction
from ironbench.study.profiled import REST, is_profiled
from ironbench.study.shares import Side, TimeDifference, half_width_of_difference

EVENT, FUNCTION = "event", "function"
"""Kinds of parts of a wait class."""
_MOST = 3
"""Maximum number of events and of functions of a wait class that are listed."""
_NAMED_FROM = 0.1
"""A function is named as part of the bottleneck if it takes at least this fraction of the bottleneck's time."""


@dataclass(frozen=True, slots=True)
class WaitPart(TimeDifference):
    """Change of a part of a wait class, in seconds per transaction. The parts of each kind add up to the class."""

    wait_class: str
    """One of `model.observer.WAIT_CLASSES`."""
    kind: str
    """`EVENT` or `FUNCTION`."""
    name: str
    """Name of the wait event or of the function; `REST` for the rest of the wait class."""
    before_s: float
    after_s: float


_Seconds = Mapping[tuple[str, str], float]
"""Seconds per transaction of one trial, by wait class and name."""


def wait_parts(before: Side, after: Side, archive: Archive, *, in_blocks: bool) -> tuple[WaitPart, ...]:
    """Divides the steps of a waterfall of the same sides (`shares.waterfall`)."""
    seen = [observed_trials(records)[0] for _, records in (before, after)]
    if in_blocks:
        seen = list(complete_blocks(*seen))
    if not all(seen):
        return ()
    keyed = [{one.block if in_blocks else place: one for place, one in enumerate(side)} for side in seen]
    whole = [{key: times(one) for key, one in side.items()} for side in keyed]
    found: list[WaitPart] = []
    for kind, divided in ((EVENT, _by_event), (FUNCTION, _by_function)):
        parts = [{key: divided(one, archive) for key, one in side.items()} for side in keyed]
        if kind == FUNCTION:
            parts = [
                {key: _within(part, times_of[key]) for key, part in side.items()}
                for side, times_of in zip(parts, whole, strict=True)
            ]
        if all(any(side.values()) for side in parts):
            found += _compared(kind, whole, parts, in_blocks)
    return tuple(found)


def _compared(
    kind: str,
    whole: Sequence[Mapping[int, Mapping[str, float]]],
    parts: Sequence[Mapping[int, _Seconds]],
    in_blocks: bool,
) -> Iterator[WaitPart]:
    """Compares the parts of each wait class. The keys of `whole` and `parts` are blocks or indices of trials."""
    known = dict.fromkeys(key for side in parts for trial in side.values() for key in trial)
    for of in dict.fromkeys(one for one, _ in known):
        every = [
            _change(of, kind, name, [_of(side, (of, name)) for side in parts], in_blocks)
            for one, name in known
            if one == of
        ]
        listed = sorted(every, key=lambda one: (-abs(one.delta_s), one.name))[:_MOST]
        rest = [
            {
                key: one.get(of, 0.0) - sum(part[key].get((of, named.name), 0.0) for named in listed)
                for key, one in side.items()
            }
            for side, part in zip(whole, parts, strict=True)
        ]
        yield from (*listed, _change(of, kind, REST, rest, in_blocks))


def _of(side: Mapping[int, _Seconds], key: tuple[str, str]) -> dict[int, float]:
    return {place: one.get(key, 0.0) for place, one in side.items()}


def _change(of: str, kind: str, name: str, sides: Sequence[Mapping[int, float]], in_blocks: bool) -> WaitPart:
    """Compares a part of the wait class `of`. `sides`: seconds per transaction of each trial."""
    before_s, after_s = (fmean(side.values()) for side in sides)
    few = min(map(len, sides)) < (LEAST_BLOCKS_SHOWN if in_blocks else 2)
    half = math.inf if few else half_width_of_difference(sides[0], sides[1], in_blocks)
    delta = after_s - before_s
    return WaitPart(delta, delta - half, delta + half, of, kind, name, before_s, after_s)


def _by_event(record: Record, archive: Archive) -> _Seconds:
    """Divides the time of each wait class among its sampled events."""
    engine, seconds = record.system.engine, times(record)
    shares: dict[str, dict[str, float]] = {}
    for name, share in record.metrics.items():
        if base_name(name) == "wait_share" and share > 0:
            event = part_of(name).partition("=")[2]
            of = wait_class(engine, event)
            if of not in (CPU, RUN_QUEUE) and event != IDLE and seconds.get(of):
                shares.setdefault(of, {})[event] = share
    return {
        (of, event): seconds[of] * share / sum(events.values())
        for of, events in shares.items()
        for event, share in events.items()
    }


def _by_function(record: Record, archive: Archive) -> _Seconds:
    """Returns the times of the engine's functions in a profile by wait class. Functions whose wait class is unknown are
    left out."""
    if not is_profiled(record):
        return {}
    engine, transactions = record.system.engine, record.metrics["transactions"]
    groups, classes = profile_groups(engine), profile_waits(engine)
    activity, deciding = activity_of(groups), deciding_function(groups)
    found: dict[tuple[str, str], float] = {}
    for one in archive.profile(record.id):
        if one.role != ENGINE or not one.samples or not in_transaction(one, activity):
            continue
        if one.reason == BLOCKED:
            of = classes.get(activity(one.stack), "")
            name = deciding(one.stack)
        else:
            of = RUN_QUEUE if one.reason == CPU_QUEUE else CPU
            name = _innermost(one)
        if of:
            found[of, name] = found.get((of, name), 0.0) + one.seconds / transactions
    return found


def _within(parts: _Seconds, whole: Mapping[str, float]) -> _Seconds:
    """Reduces the parts of each wait class in proportion if they add up to more than the class. `whole`: seconds per
    transaction of each wait class."""
    sums: dict[str, float] = {}
    for (of, _), seconds in parts.items():
        sums[of] = sums.get(of, 0.0) + seconds
    factors = {of: min(1.0, whole.get(of, 0.0) / seconds) for of, seconds in sums.items() if seconds > 0}
    return {(of, name): seconds * factors.get(of, 1.0) for (of, name), seconds in parts.items()}


def _innermost(stack: SampledStack) -> str:
    """Returns the innermost function outside the kernel."""
    user = (name for name in reversed(stack.frames) if not name.endswith(KERNEL_MARK))
    return next(user, stack.frames[-1].removesuffix(KERNEL_MARK))


def functions_of_limit(spent: TimeSpent, records: Sequence[Record], archive: Archive) -> Note | None:
    """Returns a note with the functions that take most of the bottleneck's time in a profile, each with its fraction of
    the transaction time. In each wait class, these fractions add up to at most the fraction of the class (`_within`).
    Returns None if there is no bottleneck, or no function takes a large part of its time. The functions in which
    threads wait for a CPU are left out, because they do not cause the wait.
    """
    classes = RESOURCES.get(spent.limit.resource, ()) if spent.limit.resource != OTHER_PROGRAMS else ()
    profiled = [one for one in records if is_profiled(one)]
    if not classes or not profiled or not spent.total_s:
        return None
    means: dict[tuple[str, str], float] = {}
    for record in profiled:
        for key, seconds in _by_function(record, archive).items():
            means[key] = means.get(key, 0.0) + seconds / len(profiled)
    known = {part.name: part.time_s for part in spent.parts if part.name in classes and part.name != RUN_QUEUE}
    sums: dict[str, float] = {}
    for (of, name), seconds in _within(means, known).items():
        if of in known:
            sums[name] = sums.get(name, 0.0) + seconds
    largest = sorted(sums.items(), key=lambda one: (-one[1], one[0]))[:_MOST]
    least_s = _NAMED_FROM * sum(known.values())
    named = tuple((name, time_s / spent.total_s) for name, time_s in largest if time_s >= least_s)
    return note("limit-functions", resource=spent.limit.resource, functions=named) if named else None
