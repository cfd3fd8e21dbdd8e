"""CPU time of the engine's processes and of other programs, for the breakdown of CPU time (proc_pid_stat(5)).

Servers start and end processes all the time. The CPU time of an ended process is not lost. When the parent waits for
the process, the kernel adds its CPU time to the parent's "children" counters. The engine's CPU time is therefore the
CPU time of its first process and of all living descendants, including their ended children.

The observer reads /proc/<pid>/stat of every process every 5 s and at both ends of the window. This takes about 10 µs
for each process, so 1,000 backends cost 0.2% of a core. The engine's processes are selected afterwards: they are the
descendants of its first process. A process that neither the engine nor ironbench started belongs to another program,
unless it is a kernel thread.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import partial

from ironbench.host.tree import Tree
from ironbench.model.observation import Observation, Source
from ironbench.model.observer import Samples
from ironbench.model.points import (
    CounterGrowth,
    SamplePoint,
    Values,
    by_file,
    growth,
    points,
    rate_of,
    rate_series,
    steps,
)
from ironbench.model.session import Session

_ALL = "processes.all"
_ROOT = "processes.root."
_PERIOD_S = 5.0
_KERNEL_THREAD = 0x00200000
"""PF_KTHREAD in the flags of a process (Linux: include/linux/sched.h)."""
_FIRST_KERNEL_THREAD = 2
"""Process id of kthreadd. This thread is visible only from the first process namespace, and not if /proc is mounted
with `hidepid`."""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Processes:
    name = "processes"
    doc = "CPU time of the engine's processes and of other programs, including ended processes"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        known = set(session.processes())
        stats = {pid: _stat(machine.read(f"/proc/{pid}/stat") or "") for pid in known}
        roots = [pid for pid, stat in stats.items() if stat is not None and stat.parent not in known]
        every = Source(_ALL, "file", "/proc/*/stat", _PERIOD_S)
        first = tuple(Source(f"{_ROOT}{pid}", "file", f"/proc/{pid}/stat", _PERIOD_S) for pid in sorted(roots))
        return (*first, every)

    def parse(self, samples: Samples, window_s: float) -> Observation:
        readings = _whole(points(samples.get(_ALL), partial(_engine_cpu, first=roots(samples))))
        if (grown := _long_enough(readings, window_s)) is None or "engine" not in grown.by:
            return Observation()
        each = steps(readings)
        return Observation(
            {"engine_cpu_s": grown.by["engine"], "engine_cpu_cores": grown.rate("engine")},
            (rate_series("engine_cpu_cores", each, rate_of("engine")),),
        )


def roots(samples: Samples) -> set[int]:
    """Returns the engine's first processes, from the names of their sources."""
    return {int(name.removeprefix(_ROOT)) for name in samples if name.startswith(_ROOT)}


def engine_growth(
    samples: Samples, window_s: float, observer_pids: frozenset[int] = frozenset()
) -> CounterGrowth | None:
    """Returns the CPU seconds of the engine in the window. `observers` is the time of the server processes that
    answered observers. `engine` is the time of the other server processes."""
    parser = partial(_engine_cpu, first=roots(samples), observers=observer_pids)
    return _long_enough(_whole(points(samples.get(_ALL), parser)), window_s)


def _whole(readings: list[SamplePoint]) -> list[SamplePoint]:
    """Removes samples that are wrong because processes ended while the sample was taken. This often happens after the
    window, when all backends end.

    The files of one sample are read one after the other. If a process ends after its own file was read and before its
    parent's file is read, the sample contains its time twice. In the reverse order, the sample does not contain its
    time. The true sum never decreases. The longest series of samples that does not decrease is therefore kept. If there
    are several, the one that is complete first is kept.
    """
    # For each length of a series, `ends` has the lowest last value of such a series, and `last` the sample with this
    # value.
    ends: list[float] = []
    last: list[int] = []
    before: list[int] = []
    longest = -1
    for place, reading in enumerate(readings):
        value = reading.values["engine"]
        length = bisect_right(ends, value)
        before.append(last[length - 1] if length else -1)
        if length == len(ends):
            longest = place
        ends[length : length + 1] = [value]
        last[length : length + 1] = [place]
    kept: list[SamplePoint] = []
    while longest >= 0:
        kept.append(readings[longest])
        longest = before[longest]
    return kept[::-1]


_LEAST_OF_WINDOW = 0.5


def _long_enough(readings: list[SamplePoint], window_s: float) -> CounterGrowth | None:
    """Returns the increase over the window. Returns None if the samples cover less than half of it.

    The kernel counts ticks of 10 ms, so an increase over a few milliseconds would be 0 for a busy engine.
    """
    grown = growth(readings, window_s)
    return grown if grown is not None and grown.span_s >= _LEAST_OF_WINDOW * window_s else None


def programs_growth(samples: Samples, window_s: float, own: Set[int]) -> CounterGrowth | None:
    """Returns the CPU seconds of other programs than the engine and ironbench, under the name `programs`. Returns None
    if some of them are not visible.

    `own`: processes of ironbench. The children of these processes also belong to ironbench.
    """
    readings = points(samples.get(_ALL), partial(_programs_cpu, ours=roots(samples) | own))
    return growth(_rising(readings, "programs"), window_s)


def _rising(readings: list[SamplePoint], key: str) -> list[SamplePoint]:
    """Returns a sum over processes, without the decreases of this sum. The sum decreases when a process ends and its
    parent does not wait for it."""
    reached, before, rising = 0.0, 0.0, []
    for point in readings:
        reached += max(0.0, point.values[key] - before)
        before = point.values[key]
        rising.append(SamplePoint(point.t_s, {key: reached}))
    return rising


def own_growth(samples: Samples, window_s: float, own: Set[int]) -> CounterGrowth | None:
    """Returns the CPU seconds of the processes `own` and of their descendants, under the name `own`. Descendants may
    start and end during the window."""
    return growth(_rising(points(samples.get(_ALL), partial(_own_cpu, own=own)), "own"), window_s)


def children_growth(samples: Samples, window_s: float, parent: int) -> CounterGrowth | None:
    """Returns the CPU seconds of the descendants of a process, under the name `children`. The process itself is not
    included."""
    return growth(points(samples.get(_ALL), partial(_children_cpu, parent=parent)), window_s)


def _children_cpu(text: str, parent: int) -> Values:
    stats = _stats(text)
    ours = _with_descendants({parent} & stats.keys(), stats) - {parent}
    return {"children": sum(stats[pid].own + stats[pid].ended for pid in ours) / TICKS_PER_S} if ours else {}


def _own_cpu(text: str, own: Set[int]) -> Values:
    stats = _stats(text)
    ours = _with_descendants(set(own) & stats.keys(), stats)
    return {"own": sum(stats[pid].own + stats[pid].ended for pid in ours) / TICKS_PER_S} if ours else {}


def _programs_cpu(text: str, ours: set[int]) -> Values:
    used_s = _programs_s(_stats(text), ours)
    return {} if used_s is None else {"programs": used_s}


def _programs_s(stats: Mapping[int, _Stat], ours: set[int]) -> float | None:
    if _FIRST_KERNEL_THREAD not in stats:
        return None
    ours = _with_descendants(ours, stats)
    others = (stat for pid, stat in stats.items() if pid not in ours and not stat.flags & _KERNEL_THREAD)
    return sum(stat.own + stat.ended for stat in others) / TICKS_PER_S


def programs_and_own_s(machine: Tree, own: Set[int]) -> tuple[float | None, float]:
    """Returns the CPU seconds so far of other programs (None if some are not visible), and of the processes `own` with
    their descendants."""
    stats = {}
    for name in filter(str.isdigit, machine.names("/proc")):
        if (stat := _stat(machine.read(f"/proc/{name}/stat") or "")) is not None:
            stats[int(name)] = stat
    family = _with_descendants(set(own) & stats.keys(), stats)
    used_s = sum(stats[pid].own + stats[pid].ended for pid in family) / TICKS_PER_S
    return _programs_s(stats, set(own)), used_s


def _engine_cpu(text: str, first: set[int], observers: frozenset[int] = frozenset()) -> Values:
    """Returns the CPU seconds of the engine in one sample of all processes. Returns an empty dict if the engine's first
    process has ended."""
    stats = _stats(text)
    ours = _with_descendants(first & stats.keys(), stats)
    if not ours:
        return {}
    served = sum(stats[pid].own for pid in observers & ours)
    used = sum(stats[pid].own + stats[pid].ended for pid in ours)
    return {"engine": (used - served) / TICKS_PER_S, "observers": served / TICKS_PER_S}


@dataclass(frozen=True, slots=True)
class _Stat:
    """Statistics of a process; CPU time in ticks."""

    parent: int
    flags: int
    own: int
    ended: int
    """CPU time of ended children for which the process has waited."""


def _with_descendants(first: set[int], stats: Mapping[int, _Stat]) -> set[int]:
    family, more = set(first), set(first)
    while more:
        more = {pid for pid, stat in stats.items() if stat.parent in family} - family
        family |= more
    return family


def _stats(text: str) -> dict[int, _Stat]:
    by_pid = {}
    for path, content in by_file(text).items():
        name = path.split("/")[-2]
        if name.isdigit() and (stat := _stat(content)) is not None:
            by_pid[int(name)] = stat
    return by_pid


def _stat(text: str) -> _Stat | None:
    """Parses a line of stat. The name in parentheses may itself contain blanks and parentheses."""
    words = text.rpartition(")")[2].split()
    if len(words) < 15:
        return None
    return _Stat(int(words[1]), int(words[6]), int(words[11]) + int(words[12]), int(words[13]) + int(words[14]))


OBSERVER = Processes()
