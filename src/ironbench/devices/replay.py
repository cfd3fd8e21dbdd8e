"""Replays a recorded trace on another device model in simulated time, with the recorded arrival times: predicted
latencies and load of the device, and whether it keeps up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from ironbench import _core
from ironbench._core import Histogram
from ironbench.devices.trace import OPS, Trace
from ironbench.errors import InputError

BEHIND = 0.05
"""Maximum delay of the last completion, relative to the recorded time. Beyond it, the device does not keep up."""
BEHIND_S = 0.1
"""The device keeps up if the last completion is late by less than this, which a few slow I/Os can cause in a short
trace."""
MISSED = 0.25
"""Maximum relative error of the mean latency in a replay on the recorded device. Beyond it, the replay predicts nothing
for other devices."""


@dataclass(frozen=True, slots=True)
class ReplayCheck:
    """A replay on the recorded device, for which the true latencies are known."""

    device: str
    recorded_mean_s: float
    """Mean latency of all I/Os."""
    replayed_mean_s: float

    @property
    def miss(self) -> float:
        """Replayed mean latency relative to the recorded one, minus 1."""
        return self.replayed_mean_s / self.recorded_mean_s - 1 if self.recorded_mean_s > 0 else 0.0

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
class DeviceLoad:
    """How busy a device was with the I/Os of a trace."""

    elapsed_s: float
    """Time from the first arrival to the last completion."""
    busy_share: float
    """Share of that time during which at least one I/O was in flight."""
    in_flight: float
    """Mean number of I/Os in flight."""


@dataclass(frozen=True, slots=True)
class Prediction:
    model: str
    """Device expression in normal form."""
    ios: int
    read_bytes: int
    written_bytes: int
    recorded: DeviceLoad
    predicted: DeviceLoad
    host_cpu_s: float
    """CPU time that the device's driver would use."""
    latencies: tuple[Latency, ...]

    @property
    def behind_s(self) -> float:
        """How much later than recorded the last I/O completes; negative if earlier."""
        return self.predicted.elapsed_s - self.recorded.elapsed_s

    @property
    def keeps_up(self) -> bool:
        """Whether the device serves the I/Os as fast as they arrived. If not, its queue grows as long as the load
        lasts, and so do the latencies."""
        return self.behind_s <= max(BEHIND_S, BEHIND * self.recorded.elapsed_s)

    @property
    def recorded_mean_s(self) -> float:
        """Mean recorded latency of all I/Os."""
        return self.recorded.in_flight * self.recorded.elapsed_s / self.ios

    @property
    def predicted_mean_s(self) -> float:
        """Mean predicted latency of all I/Os."""
        return self.predicted.in_flight * self.predicted.elapsed_s / self.ios


def predicted(trace: Trace, model: str, models: bytes, capacity: int | None = None) -> Prediction:
    """Replays the trace on a device of `capacity` bytes (None: just large enough). `models`: as returned by
    `models.for_core`.

    Raises InputError if the expression is invalid, or if the trace is empty or does not fit on the device.
    """
    if not len(trace.op):
        raise InputError("trace", "is empty", "record while a program uses the device")
    room = capacity or -(-trace.end() // 4096) * 4096 or None
    raw, histograms = _core.replay_trace(model, models, room, trace.for_core())
    summary = msgspec.json.decode(raw, type=dict[str, Any])
    return Prediction(
        model=_core.normal_device(model, models),
        ios=len(trace.op),
        read_bytes=summary["read_bytes"],
        written_bytes=summary["written_bytes"],
        recorded=DeviceLoad(**summary["recorded"]),
        predicted=DeviceLoad(**summary["predicted"]),
        host_cpu_s=summary["host_cpu_s"],
        latencies=tuple(
            Latency(op, histograms[op].count, histograms[f"recorded_{op}"], histograms[op])
            for op in OPS
            if histograms[op].count
        ),
    )


def checked(trace: Trace, models: bytes) -> ReplayCheck | None:
    """Replays a trace on the device it was recorded on; None if the trace does not name its device, or if that device
    takes no time.

    Raises InputError if the device's expression is unknown here or the trace is empty.
    """
    if trace.recorded is None:
        return None
    own = predicted(trace, trace.recorded.device, models, trace.recorded.capacity)
    # On a device that takes no time, the recorded latencies are those of the emulation.
    return ReplayCheck(own.model, own.recorded_mean_s, own.predicted_mean_s) if own.predicted_mean_s else None
