"""Runs a kernel of the core: threads that execute units of work between a common start and a common end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from ironbench.errors import FailureError, written
from ironbench.model.note import Note, note
from ironbench.model.record import Check
from ironbench.model.system import Load
from ironbench.model.work import Work
from ironbench.workloads.base import Option, checked

if TYPE_CHECKING:
    from ironbench._core import Histogram

_BUCKET_S = 0.1
_POLL_INTERVAL_S = 0.2
HONOURS = frozenset({"duration_s", "clients", "warmup_s"})
PIN = Option("pin", "no", "yes: pin each thread to a different CPU", ("no", "yes"))


@dataclass(frozen=True, slots=True)
class KernelTimes:
    """Results of all threads of a kernel."""

    units: int
    rate: float
    """Units per second of all threads. The rate of a thread is its number of units, divided by the time until its last
    unit ended."""
    reports: tuple[Mapping[str, Any], ...]
    """Metrics reported by the kernel itself, one mapping per thread."""
    histograms: Mapping[str, Histogram]
    """Histograms of durations. The key "" stands for whole units. Other keys are the names of parts of a unit."""
    columns: Mapping[str, Mapping[str, bytes]]
    """The two time lines, `timeline` and `seconds`, with their columns."""
    warnings: tuple[Note, ...]
    facts: Mapping[str, str]


def run_kernel(work: Work, kernel: Mapping[str, Any]) -> KernelTimes:
    """Starts the threads, opens the measurement window when all are ready, and waits until it ends. Raises
    FailureError."""
    from ironbench import _core

    load = work.load
    assert load.duration_s is not None
    allowed = sorted(os.sched_getaffinity(0))
    pinned = work.choice.options["pin"] == "yes"
    plan = {
        "threads": load.clients,
        "pin": allowed if pinned else [],
        "warmup_s": load.warmup_s,
        "seed": load.seed,
        "kernel": dict(kernel),
    }
    workers = _core.Kernels(msgspec.json.encode(plan))
    work.on_stop(workers.stop)
    while not workers.ready(_POLL_INTERVAL_S):
        work.show(0.0, "preparing")
    with work.window() as window:
        workers.start(load.duration_s)
        while not workers.done(_POLL_INTERVAL_S):
            work.show(min(1.0, window.elapsed_s / load.duration_s), "running")
    elapsed_s = window.elapsed_s
    while not workers.ended(_POLL_INTERVAL_S):
        work.show(1.0, "checking")
    raw, histograms = workers.result()
    result = msgspec.json.decode(raw)
    if not histograms[""].count and not work.stopping():
        raise FailureError(
            "kernel",
            f"no unit of work was completed within {load.duration_s:g} s",
            f"increase {written('load.duration')}, or make the units of work smaller ({written('workload.with')})",
        )
    threads = result["threads"]
    return KernelTimes(
        sum(one["units"] for one in threads),
        sum(one["units"] / one["last_s"] for one in threads if one["units"]),
        tuple(one["report"] for one in threads),
        histograms,
        _columns(result["ended"], min(elapsed_s, load.duration_s)),
        _crowded(load, allowed),
        {"threads pinned": "one CPU per thread" if pinned else "no", "CPUs": ",".join(map(str, allowed))},
    )


def right(name: str, reports: Sequence[Mapping[str, Any]], units: int) -> Check:
    """Returns a check that no unit of any thread gave a wrong result."""
    wrong = sum(report["wrong"] for report in reports)
    return checked(name, f"{units} right", f"{units - wrong} right")


def _crowded(load: Load, allowed: Sequence[int]) -> tuple[Note, ...]:
    if load.clients <= len(allowed):
        return ()
    return (note("more-threads-than-cpus", threads=load.clients, cpus=len(allowed)),)


def _columns(ended: Sequence[int], elapsed_s: float) -> dict[str, Mapping[str, bytes]]:
    """Returns time lines with the number of units that ended in each tenth of a second and in each second. Units that
    ended while the threads were stopping count in the last interval. A separate interval of a few milliseconds would
    look like a standstill.
    """
    import numpy as np

    timeline: dict[str, Mapping[str, bytes]] = {}
    counts = np.asarray(ended, dtype="f8")
    for name, width_s in (("timeline", _BUCKET_S), ("seconds", 1.0)):
        rows = max(1, -int(-elapsed_s // width_s))
        many = round(width_s / _BUCKET_S)
        padded = np.zeros(rows * many)
        within = counts[: len(padded)]
        padded[: len(within)] = within
        padded[-1] += counts[len(within) :].sum()
        zeros = np.zeros(rows)
        columns = {
            "t_s": np.arange(rows) * width_s,
            "transactions": padded.reshape(rows, many).sum(axis=1),
            "errors": zeros,
            "retries": zeros,
        }
        timeline[name] = {column: values.astype("<f8").tobytes() for column, values in columns.items()}
    return timeline
