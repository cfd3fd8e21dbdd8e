"""CPU time of the engine's processes, for the CPU budget (proc_pid_stat(5)).

Servers start and end processes all the time. What a process used is not lost when it ends: the kernel adds it to its
parent's "children" counters when the parent collects it. So the engine's CPU time is that of its first process with its
ended children, plus that of every living descendant. All /proc/<pid>/stat are read every 5 s and at both ends of the
window (about 10 µs each: 1000 backends cost 0.2 % of a core), and the engine's are picked by their parents afterwards.
"""

from __future__ import annotations

import os
from functools import partial

from ironbench.machine.tree import Tree
from ironbench.model.observation import Observation, Source
from ironbench.model.session import Session
from ironbench.observe.base import Samples
from ironbench.observe.points import Growth, Values, by_file, growth, points, rate_of, rate_series, steps

_ALL = "processes.all"
_ROOT = "processes.root."
_PERIOD_S = 5.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Processes:
    name = "processes"
    doc = "CPU time of the engine's processes, ended ones included"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        known = set(session.processes())
        stats = {pid: _stat(machine.read(f"/proc/{pid}/stat") or "") for pid in known}
        roots = [pid for pid, stat in stats.items() if stat is not None and stat[0] not in known]
        if not roots:
            return ()
        first = tuple(Source(f"{_ROOT}{pid}", "file", f"/proc/{pid}/stat", _PERIOD_S) for pid in sorted(roots))
        return (*first, Source(_ALL, "file", "/proc/*/stat", _PERIOD_S))

    def parse(self, samples: Samples, window_s: float) -> Observation:
        found = points(samples.get(_ALL), partial(_engine_cpu, first=roots(samples)))
        if (grown := growth(found, window_s)) is None or "engine" not in grown.by:
            return Observation()
        each = steps(found)
        return Observation(
            {"engine_cpu_s": grown.by["engine"], "engine_cpu_cores": grown.rate("engine")},
            (rate_series("engine_cpu_cores", each, rate_of("engine")),),
        )


def roots(samples: Samples) -> set[int]:
    """The engine's first processes, as the sources named them."""
    return {int(name.removeprefix(_ROOT)) for name in samples if name.startswith(_ROOT)}


def engine_growth(samples: Samples, window_s: float, observer_pids: frozenset[int] = frozenset()) -> Growth | None:
    """CPU seconds over the window: `engine` without, `observers` of the server processes that served our observers."""
    parser = partial(_engine_cpu, first=roots(samples), observers=observer_pids)
    return growth(points(samples.get(_ALL), parser), window_s)


def _engine_cpu(text: str, first: set[int], observers: frozenset[int] = frozenset()) -> Values:
    """CPU seconds of the engine in one reading of all processes; empty when its first process is gone."""
    stats = {}
    for path, content in by_file(text).items():
        name = path.split("/")[-2]
        if name.isdigit() and (stat := _stat(content)) is not None:
            stats[int(name)] = stat
    ours = first & stats.keys()
    more = ours
    while more:
        more = {pid for pid, (parent, _, _) in stats.items() if parent in ours} - ours
        ours |= more
    if not ours:
        return {}
    served = sum(stats[pid][1] for pid in observers & ours)
    used = sum(own + ended for _, own, ended in (stats[pid] for pid in ours))
    return {"engine": (used - served) / TICKS_PER_S, "observers": served / TICKS_PER_S}


def _stat(text: str) -> tuple[int, int, int] | None:
    """Parent, own ticks, ticks of ended children. The name in parentheses may hold blanks and parentheses itself."""
    words = text.rpartition(")")[2].split()
    if len(words) < 15:
        return None
    return int(words[1]), int(words[11]) + int(words[12]), int(words[13]) + int(words[14])


OBSERVER = Processes()
