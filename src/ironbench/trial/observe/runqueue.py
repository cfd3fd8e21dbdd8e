"""CPU scheduling wait: the time that runnable threads wait for a core. CPU utilisation does not show such waits.

/proc/schedstat contains this time for the whole machine (Linux: Documentation/scheduler/sched-stats.rst). Some kernels
are built without this file. The time is then read for each process (second number of /proc/<pid>/schedstat). This
includes all threads of ironbench, but only the main thread of any other process.
"""

from __future__ import annotations

from ironbench.host.tree import Tree
from ironbench.model.observation import Observation, Source
from ironbench.model.observer import Samples
from ironbench.model.points import (
    CounterGrowth,
    SamplePoint,
    Values,
    by_file,
    gauge_series,
    growth,
    mean_within,
    points,
    present,
    rate_series,
    steps,
)
from ironbench.model.session import Session

_WAITING = "run_queue_waiting_per_core"
"""Name of the metric: seconds of waiting per second and core. The metric may exceed 1, because several threads may wait
at once."""
_SCHEDSTAT = "runqueue.schedstat"
_PROCESSES = "runqueue.processes"
_THREADS = "runqueue.threads"
_ONLINE = "runqueue.online"
_LOADAVG = "runqueue.loadavg"
_PROCESS_PERIOD_S = 5.0
"""Sampling period in seconds. Sampling costs about 10 µs per process, so 1,000 backends at this period take 0.2% of a
core."""


class RunQueue:
    name = "runqueue"
    doc = "Time that runnable threads wait for a core, and number of runnable threads"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        load = Source(_LOADAVG, "file", "/proc/loadavg")
        if machine.exists("/proc/schedstat"):
            return (load, Source(_SCHEDSTAT, "file", "/proc/schedstat"))
        return (
            load,
            Source(_ONLINE, "file", "/sys/devices/system/cpu/online", 60.0),
            Source(_PROCESSES, "file", "/proc/*/schedstat", _PROCESS_PERIOD_S),
            Source(_THREADS, "file", "/proc/self/task/*/schedstat", _PROCESS_PERIOD_S),
        )

    def parse(self, samples: Samples, window_s: float) -> Observation:
        load = points(samples.get(_LOADAVG), _parse_loadavg)
        readings = points(samples.get(_SCHEDSTAT), _parse_schedstat)
        cores = _cores(readings, samples)
        delays = (
            [readings] if readings else [points(samples.get(name), _parse_tasks) for name in (_PROCESSES, _THREADS)]
        )
        shares = [_delay(grown) / cores for track in delays if (grown := growth(track, window_s)) is not None]
        metrics = present(
            {
                _WAITING: sum(shares) if shares else None,
                "run_queue_length": mean_within(load, "runnable", window_s),
            }
        )
        series = [gauge_series("run_queue_length", load, "runnable")] if load else []
        if shares:
            series.append(rate_series(_WAITING, steps(delays[0]), lambda step: _delay(step) / cores))
        return Observation(metrics, tuple(series))


def _delay(grown: CounterGrowth) -> float:
    """Returns seconds of waiting per second."""
    return sum(grown.by.values()) / 1e9 / grown.span_s


def _cores(readings: list[SamplePoint], samples: Samples) -> int:
    if readings:
        return len(readings[0].values)
    online = points(samples.get(_ONLINE), lambda text: {"cores": float(count_list(text))})
    return int(online[0].values["cores"]) if online else 1


def count_list(text: str) -> int:
    """Returns the number of CPUs in a list such as `0-3,8`."""
    total = 0
    for part in text.strip().split(","):
        low, _, high = part.partition("-")
        total += int(high or low) - int(low) + 1
    return total


def _parse_schedstat(text: str) -> Values:
    """Returns nanoseconds of waiting per core: the eighth number in the core's line."""
    return {
        words[0]: float(words[8])
        for line in text.splitlines()
        if (words := line.split()) and words[0].startswith("cpu") and len(words) > 8
    }


def _parse_tasks(text: str) -> Values:
    """Returns nanoseconds of waiting per task, without /proc/self and /proc/thread-self, which repeat a task."""
    return {
        path: float(content.split()[1])
        for path, content in by_file(text).items()
        if path.split("/")[-2].isdigit() and len(content.split()) > 1
    }


def _parse_loadavg(text: str) -> Values:
    """Returns the number of runnable tasks, without the one that read the file."""
    return {"runnable": max(0.0, float(text.split()[3].partition("/")[0]) - 1.0)}


OBSERVER = RunQueue()
