"""A recorded trace on another model, without waiting: predicted time and latencies, and how far to believe them."""

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
"""Above this share of bytes written, the kernel chooses when data reach the device, and another device changes that."""
LATENCY_FAR = 20.0
"""Beyond this factor of change in mean latency, a program would behave differently: it was not measured near there."""
FLUSH_FAR = 2.0
"""Beyond this factor of change in the time of a flush, other transactions share one flush: fewer or more flushes."""
THINKING_FAR = 0.9
"""Above this share of think time in the prediction, the device hardly matters, and what does was not modelled."""
SAME = 1.05
"""Within this factor of the recorded time, who waited for whom makes no difference."""
CHAINED_FAR = 0.5
"""Above this share of think time, and with several I/Os at a time, thinking of one client is taken for that of all."""
OTHERS_FAR = 2.0
"""Beyond this factor of the CPU that the I/Os leave time for, most of what the processors did was not this work's."""
DISTURBED_FAR = 0.1
"""Above this share of the cores that others took, what was recorded is not the work alone."""
COLD_FAR = 0.25
"""Below this share of the recorded time with computing, what was computed began with a pause.

Backends of PostgreSQL used 2.7 s for 8000 transactions on a disk and 1.2 s on an SSD, in all of their code alike:
caches hold other things after a pause. With a loop on every core that yields to them it was 2.0 s."""
COMPUTING_FAR = 0.5
"""Above this share of the predicted time on all cores that can have work, it is computing that decides it."""
IDLING_FAR = 0.5
"""Below this share of think times without computing, the machine's counts say how many clients thought at a time."""
IDLE_FAR = 0.5
"""Below this mean of I/Os under way, as a share of the most at a time, clients think more than they wait.

Where neither was passed, replays with known clients were within about 10 %: as in
`crates/ironbench-device/src/replay/fidelity.rs`."""


MISSED = 0.25
"""A replay on the recorded device that misses the recorded time by more predicts nothing for another device."""


@dataclass(frozen=True, slots=True)
class ReplayCheck:
    """A replay on the device that was recorded, whose time is known."""

    device: str
    recorded_s: float
    replayed_s: float

    @property
    def miss(self) -> float:
        """Replayed over recorded time, minus 1."""
        return self.replayed_s / self.recorded_s - 1 if self.recorded_s > 0 else 0.0

    @property
    def missed(self) -> bool:
        return abs(self.miss) > MISSED


@dataclass(frozen=True, slots=True)
class Latency:
    """Of one operation, recorded and predicted."""

    op: str
    count: int
    recorded: Histogram
    predicted: Histogram


@dataclass(frozen=True, slots=True)
class Prediction:
    model: str
    """The device expression, in normal form."""
    closed: bool
    """Whether the work was held (an I/O comes after those it waited for) or the arrivals."""
    ios: int
    recorded_s: float
    """First arrival to last completion."""
    predicted_s: float
    thinking_s: float
    """The longest chain of think times: what no device shortens. 0 in an open replay."""
    cores: int
    """That the replay had; 0 where the trace does not tell what the processors did, or the arrivals are held."""
    computing_s: float
    """CPU that the work takes, on all cores together. 0 where the trace does not tell."""
    used_s: float
    """CPU of the work while it was recorded; where nobody knows which it was, of all programs but the emulation."""
    idling: float
    """Share of the think times without computing and without waiting for a core; 1 where the trace does not tell."""
    host_cpu_s: float
    """CPU that the device's own driver would take."""
    read_bytes: int
    written_bytes: int
    latencies: tuple[Latency, ...]
    out_of_range: tuple[str, ...]
    """Why the prediction may be wrong; empty where nothing speaks against it."""

    @property
    def ratio(self) -> float:
        """Predicted over recorded time."""
        return self.predicted_s / self.recorded_s if self.recorded_s > 0 else float("nan")


def predicted(
    trace: Trace, model: str, models: bytes, capacity: int | None = None, closed: bool = True, answering_ns: int = 0
) -> Prediction:
    """The trace on a device of `capacity` bytes (None: just large enough). `models`: as `models.for_core` makes them.

    `answering_ns`: CPU that the process of an emulated device needs for each I/O there; see `Processors.answering_ns`.

    InputError: the expression is wrong, the trace is empty, or it does not fit.
    """
    if not len(trace.op):
        raise InputError("trace", "there is nothing in it", "record while something is at work on the device")
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
    """The replay of a trace on the device that was recorded; None where the trace does not name its device.

    InputError: the device's expression is not known here, or the trace is empty.
    """
    if trace.recorded is None:
        return None
    # While it was recorded the emulation took its CPU, too.
    answering_ns = trace.processors.answering_ns() if trace.processors else 0
    own = predicted(trace, trace.recorded.device, models, trace.recorded.capacity, closed, answering_ns)
    return ReplayCheck(own.model, own.recorded_s, own.predicted_s)


def _doubts(prediction: Prediction) -> tuple[str, ...]:
    """Why this prediction may be wrong."""
    doubts = []
    moved = prediction.read_bytes + prediction.written_bytes
    share = prediction.written_bytes / moved if moved else 0.0
    if share > WRITES_FAR:
        doubts.append(
            f"{in_percent(share)} of the bytes are writes: when the kernel and checkpoints write depends on the "
            "device's speed and on the clock, and both stay as recorded here"
        )
    for one in prediction.latencies:
        change = _change(one)
        if one.op == "flush" and not 1 / FLUSH_FAR <= change <= FLUSH_FAR:
            more = "fewer" if change > 1 else "more"
            doubts.append(
                f"a flush takes {change:.2g} times as long: transactions that share one (group commit) would need "
                f"{more} of them, and here their number stays"
            )
        elif one.op != "flush" and not 1 / LATENCY_FAR <= change <= LATENCY_FAR:
            doubts.append(f"a {one.op} takes {change:.2g} times as long: far from what was recorded")
    if (
        prediction.closed
        and prediction.predicted_s > 0
        and prediction.thinking_s / prediction.predicted_s > THINKING_FAR
    ):
        doubts.append("nearly all of the predicted time is the program's own: what limits it then was not modelled")
    if prediction.used_s > OTHERS_FAR * prediction.computing_s > 0:
        doubts.append(
            f"{prediction.used_s:.2g} s of CPU were used, and the work can have taken {prediction.computing_s:.2g} s: "
            "what other programs did, or this one besides its I/Os, is left out"
        )
    return tuple(doubts)


def _change(one: Latency) -> float:
    """Predicted over recorded mean; 1 where neither takes any time."""
    recorded, predicted = one.recorded.mean_s, one.predicted.mean_s
    if recorded <= 0:
        return 1.0 if predicted <= 0 else float("inf")
    return predicted / recorded


def _unknown_clients(prediction: Prediction, most: int, mean: float) -> tuple[str, ...]:
    """A doubt where several clients that think are likely: a trace does not tell who waited for whom."""
    if not prediction.closed or most < 2 or prediction.idling < IDLING_FAR:
        return ()
    chained = prediction.predicted_s > 0 and prediction.thinking_s / prediction.predicted_s > CHAINED_FAR
    if prediction.ratio < 1 / SAME and chained:
        return (f"up to {most} I/Os at a time, and then mostly thinking: clients may be slower than predicted",)
    if prediction.ratio > SAME and mean / most < IDLE_FAR:
        return (f"up to {most} I/Os at a time, {mean:.1f} on average: clients may be faster than predicted",)
    return ()


def _cold(prediction: Prediction, most: int) -> tuple[str, ...]:
    """A doubt where it was recorded with pauses before most of what was computed, and computing decides the time."""
    # No more cores than I/Os at a time can have something to compute for them.
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
        f"computing decides the time there, and here the work computed for {in_percent(busy)} of the time: after "
        "pauses it takes longer (twice as long was seen), so the prediction is likely too long",
    )


def _disturbed(trace: Trace, prediction: Prediction) -> tuple[str, ...]:
    """A doubt where other programs are known to have taken much of the processors."""
    if trace.processors is None or not prediction.closed or prediction.recorded_s <= 0:
        return ()
    cores = trace.processors.others_s() / prediction.recorded_s
    if cores <= DISTURBED_FAR * trace.processors.cores:
        return ()
    cause = f"other programs used {cores:.1f} of {trace.processors.cores} cores while it was recorded"
    return (f"{cause}: they slowed the work, and made it wait",)


def _under_way(trace: Trace, elapsed_s: float) -> tuple[int, float]:
    """I/Os under way: what 99 in 100 arrivals do not find exceeded, and the mean."""
    arrived, done = trace.time_ns.astype("i8"), np.sort(trace.completed_ns.astype("i8"))
    # When one arrives, those before it that are not done yet, and itself.
    at_arrival = np.arange(1, len(arrived) + 1) - np.searchsorted(done, arrived, side="right")
    most = int(np.quantile(at_arrival, 0.99, method="lower"))
    waited_s = float((trace.completed_ns.astype("i8") - arrived).sum()) / 1e9
    return most, waited_s / elapsed_s if elapsed_s > 0 else 0.0
