"""A recorded trace on another model, without waiting: predicted time and latencies, and how far to believe them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec

from ironbench import _core
from ironbench._core import Histogram
from ironbench.devices.trace import OPS, Trace
from ironbench.errors import InputError

WRITES_FAR = 0.5
"""Above this share of bytes written, the kernel chooses when data reach the device, and another device changes that."""
LATENCY_FAR = 20.0
"""Beyond this factor of change in mean latency, a program would behave differently: it was not measured near there."""
FLUSH_FAR = 2.0
"""Beyond this factor of change in the time of a flush, other transactions share one flush: fewer or more flushes."""
THINKING_FAR = 0.9
"""Above this share of think time in the prediction, the device hardly matters, and what does was not modelled."""


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


def predicted(trace: Trace, model: str, models: bytes, capacity: int | None = None, closed: bool = True) -> Prediction:
    """The trace on a device of `capacity` bytes (None: just large enough). `models`: as `models.for_core` makes them.

    InputError: the expression is wrong, the trace is empty, or it does not fit.
    """
    if not len(trace.op):
        raise InputError("trace", "there is nothing in it", "record while something is at work on the device")
    room = capacity or -(-trace.end() // 4096) * 4096 or None
    raw, histograms = _core.replay_trace(model, models, room, trace.for_core(), closed)
    summary = msgspec.json.decode(raw, type=dict[str, Any])
    latencies = tuple(
        Latency(op, histograms[op].count, histograms[f"recorded_{op}"], histograms[op])
        for op in OPS
        if histograms[op].count
    )
    found = Prediction(
        model=_core.normal_device(model, models),
        closed=closed,
        ios=len(trace.op),
        recorded_s=summary["recorded_elapsed_s"],
        predicted_s=summary["elapsed_s"],
        thinking_s=summary["thinking_s"],
        host_cpu_s=summary["host_cpu_s"],
        read_bytes=summary["read_bytes"],
        written_bytes=summary["written_bytes"],
        latencies=latencies,
        out_of_range=(),
    )
    return replace(found, out_of_range=_doubts(found))


def _doubts(found: Prediction) -> tuple[str, ...]:
    """Why this prediction may be wrong."""
    doubts = []
    moved = found.read_bytes + found.written_bytes
    share = found.written_bytes / moved if moved else 0.0
    if share > WRITES_FAR:
        doubts.append(
            f"{share:.0%} of the bytes are writes: when the kernel and checkpoints write depends on the device's speed "
            "and on the clock, and both stay as recorded here"
        )
    for one in found.latencies:
        change = _change(one)
        if one.op == "flush" and not 1 / FLUSH_FAR <= change <= FLUSH_FAR:
            more = "fewer" if change > 1 else "more"
            doubts.append(
                f"a flush takes {change:.2g} times as long: transactions that share one (group commit) would need "
                f"{more} of them, and here their number stays"
            )
        elif one.op != "flush" and not 1 / LATENCY_FAR <= change <= LATENCY_FAR:
            doubts.append(f"a {one.op} takes {change:.2g} times as long: far from what was recorded")
    if found.closed and found.predicted_s > 0 and found.thinking_s / found.predicted_s > THINKING_FAR:
        doubts.append("nearly all of the predicted time is the program's own: what limits it then was not modelled")
    return tuple(doubts)


def _change(one: Latency) -> float:
    """Predicted over recorded mean; 1 where neither takes any time."""
    recorded, predicted = one.recorded.mean_s, one.predicted.mean_s
    if recorded <= 0:
        return 1.0 if predicted <= 0 else float("inf")
    return predicted / recorded
