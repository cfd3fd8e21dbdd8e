"""Replays a recorded trace on another device model, in simulated time. The I/Os have their recorded arrival times.
Predicts the latencies and the load of the device, and whether the device keeps up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from ironbench import _core
from ironbench._core import Histogram
from ironbench.devices.trace import OPS, Trace
from ironbench.errors import InputError

BEHIND = 0.05
"""Maximum delay of the last completion as a fraction of the recorded time. With a longer delay, the device does not
keep up."""
BEHIND_S = 0.1
"""A device keeps up if its last completion is delayed by no more than this number of seconds, whatever the length of
the trace. A few slow I/Os at the end of a short trace can cause such a delay."""
MISSED = 0.25
"""Maximum relative error of the mean latency in a replay on the recorded device. With a larger error, the replay makes
no prediction for other devices."""


@dataclass(frozen=True, slots=True)
class ReplayCheck:
    """Result of a replay on the device on which the trace was recorded. The true latencies of this device are known."""

    device: str
    recorded_mean_s: float
    """Mean latency of all I/Os."""
    replayed_mean_s: float

    @property
    def miss(self) -> float:
        """Relative error of the replay: replayed mean latency divided by the recorded mean latency, minus 1."""
        return self.replayed_mean_s / self.recorded_mean_s - 1 if self.recorded_mean_s > 0 else 0.0

    @property
    def missed(self) -> bool:
        return abs(self.miss) > MISSED


@dataclass(frozen=True, slots=True)
class Latency:
    """Recorded and predicted latencies of one operation, such as reads."""

    op: str
    count: int
    recorded: Histogram
    predicted: Histogram


@dataclass(frozen=True, slots=True)
class DeviceLoad:
    """Utilisation of a device by the I/Os of a trace."""

    elapsed_s: float
    """Time from the first arrival to the last completion."""
    busy_share: float
    """Fraction of `elapsed_s` during which at least one I/O was in flight."""
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
        """How much later than recorded the last I/O completes, in seconds. The value is negative if the I/O completes
        earlier."""
        return self.predicted.elapsed_s - self.recorded.elapsed_s

    @property
    def keeps_up(self) -> bool:
        """Whether the device serves the I/Os as fast as they arrived. If not, the queue and the latencies grow for as
        long as the load lasts."""
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
    """Replays the trace on a device of `capacity` bytes. Without `capacity`, the device is just large enough for the
    trace. `models`: as returned by `models.for_core`.

    Raises InputError if the expression is invalid, or if the trace is empty or does not fit on the device.
    """
    if not len(trace.op):
        raise InputError("trace", "is empty", "record a trace while a program uses the device")
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
    """Replays a trace on the device on which it was recorded. Returns None if the trace does not name its device, or if
    the model of that device has no latency. Raises InputError if this machine does not know the device's expression, or
    if the trace is empty."""
    if trace.recorded is None:
        return None
    own = predicted(trace, trace.recorded.device, models, trace.recorded.capacity)
    # On a device without modelled latency, the recorded latencies are those of the emulation itself. They cannot be
    # compared with the model.
    return ReplayCheck(own.model, own.recorded_mean_s, own.predicted_mean_s) if own.predicted_mean_s else None
