"""Time of an I/O by role and direction, where every role has a device's partition of its own.

Two roles on one real device show the figures of both together, so that only emulated devices, which tell their
partitions apart, are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ironbench.analyse.summarise import Summary, summarise
from ironbench.model.record import Record

_ROLES = ("data", "temp", "log")
_RATES = {"read": "device_reads_per_s", "write": "device_writes_per_s", "flush": "device_flushes_per_s"}
"""What a device is asked for, and the metric that says how often."""
_FEWEST = 30.0
"""Of fewer I/Os in a trial the mean says little."""


@dataclass(frozen=True, slots=True)
class RoleLatency:
    """One role of one system in one direction, over its trials."""

    name: str
    """Of the system or cell."""
    role: str
    direction: str
    """`read`, `write` or `flush`."""
    mean_s: Summary
    """As the block layer sees it, waiting in the kernel's queue included."""
    p99_s: Summary | None
    """As the device's own process counts it, from when it was given the I/O; of a free device it counts none."""
    per_s: Summary
    size_bytes: Summary | None

    @property
    def what(self) -> str:
        """As files are spoken of: `data read`, `temp write`."""
        return f"{self.role} {self.direction}"


def role_latencies(groups: Sequence[tuple[str, Sequence[Record]]]) -> tuple[RoleLatency, ...]:
    """`groups`: name and comparable trials of each; in order of roles, then as given."""
    found = []
    for role in _ROLES:
        for direction in _RATES:
            for name, records in groups:
                one = _one(name, records, role, direction)
                if one is not None:
                    found.append(one)
    return tuple(found)


def _apart(record: Record, role: str, quantile: str) -> bool:
    """Whether the role has a partition of its own: an engine that keeps its log with its data has one for both.

    Of devices that were mounted by hand the quantile tells, which others do not have.
    """
    partitions = {one.role for device in record.system.layout.devices for one in device.partitions}
    return role in partitions or (role == "data" and quantile in record.metrics)


def _one(name: str, records: Sequence[Record], role: str, direction: str) -> RoleLatency | None:
    label = f"{{role={role}}}"
    quantile, rate = f"device_{direction}_latency_p99_s{label}", f"{_RATES[direction]}{label}"
    own = [
        record.metrics
        for record in records
        if _apart(record, role, quantile) and record.metrics.get(rate, 0.0) * record.elapsed_s >= _FEWEST
    ]

    def of(metric: str) -> Summary | None:
        return summarise([metrics[metric] for metrics in own if metric in metrics])

    mean, per_s = of(f"device_{direction}_latency_s{label}"), of(rate)
    if mean is None or per_s is None:
        return None
    return RoleLatency(name, role, direction, mean, of(quantile), per_s, of(f"device_{direction}_size_bytes{label}"))
