"""Replays a recorded trace on another device model in simulated time: predicted time and latencies, and how reliable
the prediction is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from ironbench import _core
from ironbench._core import Histogram
from ironbench.devices.trace import OPS, Trace
from ironbench.errors import InputError
from ironbench.words import in_percent

WRITES_FAR = 0.5
"""Maximum share of written bytes. Above it, the kernel decides when data reach the device, and a different device
changes that."""
LATENCY_FAR = 20.0
"""Maximum factor of change in mean latency. Beyond it, a program would behave differently from what was recorded."""
FLUSH_FAR = 2.0
"""Maximum factor of change in flush time. Beyond it, group commit would combine more or fewer transactions into one
flush."""
THINKING_FAR = 0.9
"""Maximum share of think time in the prediction. Above it, the device hardly matters, and what does matter is not
modelled."""
SAME = 1.05
"""If predicted and recorded time differ by at most this factor, dependencies between clients make no difference."""
CHAINED_FAR = 0.5
"""Maximum share of think time when several I/Os are in flight. Above it, the think time of one client is attributed to
all."""
OTHERS_FAR = 2.0
"""Maximum ratio of used CPU time to the CPU time that fits between the I/Os. Above it, most of the CPU was used by
other work."""
DISTURBED_FAR = 0.1
"""Maximum share of the cores that other programs used. Above it, the recording contains considerable work of other
programs."""
COLD_FAR = 0.25
"""Minimum share of the recorded time spent computing. Below it, most computations started after a pause.

On a disk, PostgreSQL backends used 2.7 s of CPU for 8,000 transactions, on an SSD 1.2 s, with the difference spread
over all of their code: after a pause the CPU caches contain other data. With a busy loop of low priority on every core
it was 2.0 s.
"""
COMPUTING_FAR = 0.5
"""Minimum share of the predicted time spent computing, on all cores that can have work, with which CPU counts as the
bottleneck."""
IDLING_FAR = 0.5
"""Share of think time spent idle. Below it, the machine's CPU counters show how many clients were thinking at a
time."""
IDLE_FAR = 0.5
"""Mean queue depth, relative to the maximum, below which clients spend more time thinking than waiting for I/O.

When neither threshold was passed, replays with known clients were within about 10%, as in
`crates/ironbench-device/src/replay/fidelity.rs`.
"""


MISSED = 0.25
"""Maximum relative error of a replay on the recorded device. Beyond it, the replay predicts nothing for other
devices."""


@dataclass(frozen=True, slots=True)
class ReplayCheck:
    """A replay on the recorded device, for which the true time is known."""

    device: str
    recorded_s: float
    replayed_s: float

    @property
    def miss(self) -> float:
        """Replayed time relative to recorded time, minus 1."""
        return self.replayed_s / self.recorded_s - 1 if self.recorded_s > 0 else 0.0

    @property
    def missed(self) -> bool:
        return abs(self.miss) > MISSED


@dataclass(frozen=True, slots=True)
class Latency:
    """Latencies of one operation, recorded and predicted."""

    op: str
    count: int
    recorded: Histogram
    predicted: Histogram


@dataclass(frozen=True, slots=True)
class Prediction:
    model: str
    """Device expression in normal form."""
    closed: bool
    """Whether the replay keeps the dependencies (an I/O is issued after the ones it waited for) or the arrival
    times."""
    ios: int
    recorded_s: float
    """Time from the first arrival to the last completion."""
    predicted_s: float
    thinking_s: float
    """Longest chain of think times: the part that no device can shorten. 0 in an open-loop replay."""
    cores: int
    """Cores of the replay; 0 if the trace has no CPU counters or the arrival times are kept."""
    computing_s: float
    """CPU time of the work, summed over all cores. 0 if the trace has no CPU counters."""
    used_s: float
    """CPU time of the work during recording; if it cannot be separated, of all programs except the emulation."""
    idling: float
    """Share of think time spent neither computing nor waiting for a core; 1 if the trace has no CPU counters."""
    host_cpu_s: float
    """CPU time that the device's driver would use."""
    read_bytes: int
    written_bytes: int
    latencies: tuple[Latency, ...]
    out_of_range: tuple[str, ...]
    """Reasons why the prediction may be wrong; empty if there are none."""

    @property
    def ratio(self) -> float:
        """Predicted time relative to recorded time."""
        return self.predicted_s / self.recorded_s if self.recorded_s > 0 else float("nan")


def predicted(
    trace: Trace, model: str, models: bytes, capacity: int | None = None, closed: bool = True, answering_ns: int = 0
) -> Prediction:
    """Replays the trace on a device of `capacity` bytes (None: just large enough). `models`: as returned by
    `models.for_core`.

    `answering_ns`: CPU time per I/O of an emulated device's process, see `CpuCounters.answering_ns`.

    Raises InputError if the expression is invalid, or if the trace is empty or does not fit on the device.
    """
    if not len(trace.op):
        raise InputError("trace", "is empty", "record while a program uses the device")
    room = capacity or -(-trace.end() // 4096) * 4096 or None
    processors = trace.processors
    counts = processors.for_core(answering_ns) if processors and closed else None
    raw, histograms = _core.replay_trace(model, models, room, trace.for_core(), closed, counts)
    summary = msgspec.json.decode(raw, type=dict[str, Any])
    latencies = tuple(
        Latency(op, histograms[op].count, histograms[f"recorded_{op}"], histograms[op])
        for op in OPS
        if histograms[op].count
    )
    prediction = Prediction(
        model=_core.normal_device(model, models),
        closed=closed,
        ios=len(trace.op),
        recorded_s=summary["recorded_elapsed_s"],
        predicted_s=summary["elapsed_s"],
        thinking_s=summary["thinking_s"],
        cores=processors.cores if processors and closed else 0,
        computing_s=summary["computing_s"],
        used_s=summary["used_s"],
        idling=summary["idling_s"] / summary["thoughts_s"] if summary["thoughts_s"] else 0.0,
        host_cpu_s=summary["host_cpu_s"],
        read_bytes=summary["read_bytes"],
        written_bytes=summary["written_bytes"],
        latencies=latencies,
        out_of_range=(),
    )
    most, mean = _under_way(trace, prediction.recorded_s)
    doubts = (
        *_doubts(prediction),
        *_cold(prediction, most),
        *_unknown_clients(prediction, most, mean),
        *_disturbed(trace, prediction),
    )
    return replace(prediction, out_of_range=doubts)


def checked(trace: Trace, models: bytes, closed: bool = True) -> ReplayCheck | None:
    """Replays a trace on the device it was recorded on; None if the trace does not name its device.

    Raises InputError if the device's expression is unknown here or the trace is empty.
    """
    if trace.recorded is None:
        return None
    # The emulation used CPU time while the trace was recorded.
    answering_ns = trace.processors.answering_ns() if trace.processors else 0
    own = predicted(trace, trace.recorded.device, models, trace.recorded.capacity, closed, answering_ns)
    return ReplayCheck(own.model, own.recorded_s, own.predicted_s)


def _doubts(prediction: Prediction) -> tuple[str, ...]:
    """Reasons why this prediction may be wrong."""
    doubts = []
    moved = prediction.read_bytes + prediction.written_bytes
    share = prediction.written_bytes / moved if moved else 0.0
    if share > WRITES_FAR:
        doubts.append(
            f"{in_percent(share)} of the bytes are writes: the times of writes by the kernel and checkpoints depend "
            "on the device's speed and on the clock, but the replay keeps the recorded ones"
        )
    for one in prediction.latencies:
        change = _change(one)
        if one.op == "flush" and not 1 / FLUSH_FAR <= change <= FLUSH_FAR:
            more = "fewer" if change > 1 else "more"
            doubts.append(
                f"a flush takes {change:.2g} times as long: transactions that share one (group commit) would need "
                f"{more} flushes, but the replay keeps the recorded number"
            )
        elif one.op != "flush" and not 1 / LATENCY_FAR <= change <= LATENCY_FAR:
            doubts.append(f"a {one.op} takes {change:.2g} times as long as recorded: the prediction is less certain")
    if (
        prediction.closed
        and prediction.predicted_s > 0
        and prediction.thinking_s / prediction.predicted_s > THINKING_FAR
    ):
        doubts.append("nearly all of the predicted time is spent in the program, whose limits are not modelled")
    if prediction.used_s > OTHERS_FAR * prediction.computing_s > 0:
        doubts.append(
            f"{prediction.used_s:.2g} s of CPU were used, but the workload needed {prediction.computing_s:.2g} s: "
            "CPU use of other programs, and of this one apart from its I/Os, is not replayed"
        )
    return tuple(doubts)


def _change(one: Latency) -> float:
    """Predicted mean latency relative to the recorded one; 1 if neither takes any time."""
    recorded, predicted = one.recorded.mean_s, one.predicted.mean_s
    if recorded <= 0:
        return 1.0 if predicted <= 0 else float("inf")
    return predicted / recorded


def _unknown_clients(prediction: Prediction, most: int, mean: float) -> tuple[str, ...]:
    """Warns when the trace probably has several clients with think time: it does not show which client issued an
    I/O."""
    if not prediction.closed or most < 2 or prediction.idling < IDLING_FAR:
        return ()
    chained = prediction.predicted_s > 0 and prediction.thinking_s / prediction.predicted_s > CHAINED_FAR
    if prediction.ratio < 1 / SAME and chained:
        return (f"up to {most} I/Os in flight, followed mostly by think time: clients may be slower than predicted",)
    if prediction.ratio > SAME and mean / most < IDLE_FAR:
        return (f"up to {most} I/Os in flight, {mean:.1f} on average: clients may be faster than predicted",)
    return ()


def _cold(prediction: Prediction, most: int) -> tuple[str, ...]:
    """Warns when computations mostly followed a pause during recording and CPU is the bottleneck of the prediction."""
    # At most as many cores can be busy as there are I/Os in flight.
    cores = min(prediction.cores, most)
    if (
        not cores
        or prediction.recorded_s <= 0
        or prediction.computing_s <= COMPUTING_FAR * cores * prediction.predicted_s
    ):
        return ()
    busy = prediction.used_s / (cores * prediction.recorded_s)
    if busy >= COLD_FAR:
        return ()
    return (
        f"CPU is the bottleneck in the prediction, but was used {in_percent(busy)} of the time when recorded: after "
        "pauses, computing takes longer (up to twice as long), so the prediction is likely too long",
    )


def _disturbed(trace: Trace, prediction: Prediction) -> tuple[str, ...]:
    """Warns when other programs used much of the CPU during recording."""
    if trace.processors is None or not prediction.closed or prediction.recorded_s <= 0:
        return ()
    cores = trace.processors.others_s() / prediction.recorded_s
    if cores <= DISTURBED_FAR * trace.processors.cores:
        return ()
    cause = f"other programs used {cores:.1f} of {trace.processors.cores} cores during the recording"
    return (f"{cause}: they slowed down the workload and made it wait",)


def _under_way(trace: Trace, elapsed_s: float) -> tuple[int, float]:
    """Queue depth: its 99th percentile at arrivals, and its mean."""
    arrived, done = trace.time_ns.astype("i8"), np.sort(trace.completed_ns.astype("i8"))
    # At each arrival: the earlier I/Os that have not completed, plus the new one.
    at_arrival = np.arange(1, len(arrived) + 1) - np.searchsorted(done, arrived, side="right")
    most = int(np.quantile(at_arrival, 0.99, method="lower"))
    waited_s = float((trace.completed_ns.astype("i8") - arrived).sum()) / 1e9
    return most, waited_s / elapsed_s if elapsed_s > 0 else 0.0
