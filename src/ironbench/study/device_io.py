"""Facts about devices: which device stores the files of a role, the distributions of latencies and sizes for each role,
mean latencies, and CPU time per read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from ironbench import units
from ironbench.catalogue import base_name, part_of
from ironbench.model.record import Record
from ironbench.model.sample import sampled
from ironbench.model.system import Layout
from ironbench.records.work import work
from ironbench.study.archive import Archive
from ironbench.study.summarise import Summary, summarise


def stored_on(record: Record, role: str, machine: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the device and partition that store a role's files. Returns nothing if they are unknown."""
    layout = record.system.layout
    directory = getattr(layout, role) or layout.data
    if not directory:
        return ()
    path = Path(directory)
    for number, device in enumerate(layout.devices, 1):
        for partition in device.partitions:
            if path.is_relative_to(partition.directory):
                alike = sum(one.model == device.model for one in layout.devices)
                which = f", number {number}" if alike > 1 else ""
                return f"emulated {units.device(device.model)}{which}", partition.directory
    mounts = [mount for mount in machine.get("mounts", ()) if path.is_relative_to(mount["path"])]
    if not mounts:
        return ()
    mount = max(mounts, key=lambda mount: len(mount["path"]))
    # On btrfs, each subvolume has a different anonymous device number, so the source is used instead.
    return _disk(mount, machine), mount["source"] if mount["number"].startswith("0:") else mount["number"]


def _disk(mount: Mapping[str, Any], machine: Mapping[str, Any]) -> str:
    """Returns the disk's name in /sys/block with its model or size. If no disk is recorded, returns the file system's
    source."""
    for block in machine.get("blocks", ()):
        name = block["name"]
        # If a disk's name ends with a digit, its partitions have a p before the number (Linux: bdevname,
        # block/partitions). Without this rule, md12 would match disk md1.
        of_disk = re.fullmatch(rf"/dev/{re.escape(name)}({'p' if name[-1:].isdigit() else ''}\d+)?", mount["source"])
        if block["number"] == mount["number"] or of_disk:
            size = units.memory(block["size_bytes"]) if block.get("size_bytes") else ""
            return ", ".join(filter(None, (block["name"], block.get("model") or size)))
    return str(mount["source"])


_PER_OCTAVE = {"latency_s": 4, "size_bytes": 1}
"""Number of histogram bars per doubling of the latency or size. Devices count latencies in eighths of an octave and
sizes in whole octaves."""
_SMALLEST = {"latency_s": 1e-6, "size_bytes": 512.0}
"""Lower ends of the first buckets (`crates/ironbench-device/src/live/tally.rs`)."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Distribution of latency or size for one kind of I/O on one role."""

    metric: str
    """Name of the metric: `device_read_latency_s`, `device_write_size_bytes`, …"""
    part: str
    """Role of the files."""
    count: float
    points: tuple[tuple[float, float], ...]
    """Pairs (upper end of a bucket, fraction of the I/Os in it), including empty buckets in between."""

    @property
    def step(self) -> float:
        """Ratio of a bucket's upper end to its lower end."""
        return 2 ** (1 / _PER_OCTAVE[_quantity(self.metric)])

    def quantile(self, share: float) -> float:
        """Returns the upper end of the bucket in which the cumulative fraction is reached."""
        passed = 0.0
        for edge, own in self.points:
            passed += own
            if passed >= share - 1e-9:
                return edge
        return self.points[-1][0]


def distributions(trials: Sequence[Record], archive: Archive) -> tuple[Distribution, ...]:
    """Returns the distributions, sorted by name. Returns none if the devices did not count I/Os by size and latency.
    Only emulated devices do."""
    merged: dict[str, dict[int, float]] = {}
    for record in trials:
        for one in archive.counted(record.id):
            if not base_name(one.name).endswith(tuple(_PER_OCTAVE)):  # counted by a different version of ironbench
                continue
            buckets = merged.setdefault(one.name, {})
            for edge, count in zip(one.edges, one.counts, strict=True):
                place = _place(one.name, edge)
                buckets[place] = buckets.get(place, 0.0) + count
    return tuple(_distribution(name, buckets) for name, buckets in sorted(merged.items()) if sum(buckets.values()) > 0)


def _quantity(name: str) -> str:
    return next(quantity for quantity in _PER_OCTAVE if base_name(name).endswith(quantity))


def _place(name: str, edge: float) -> int:
    quantity = _quantity(name)
    octaves = math.log2(max(edge, _SMALLEST[quantity]) / _SMALLEST[quantity])
    return math.ceil(octaves * _PER_OCTAVE[quantity] - 1e-6)


def _distribution(name: str, buckets: dict[int, float]) -> Distribution:
    quantity, total = _quantity(name), sum(buckets.values())
    points = [
        (_SMALLEST[quantity] * 2 ** (place / _PER_OCTAVE[quantity]), buckets.get(place, 0.0) / total)
        for place in range(min(buckets), max(buckets) + 1)
    ]
    return Distribution(base_name(name), part_of(name).removeprefix("role="), total, tuple(points))


# Mean latencies by role are available only for emulated devices, which count each partition separately. A real device
# that stores files of two roles counts both together.

_ROLES = ("data", "temp", "log")
_RATES = {"read": "device_reads_per_s", "write": "device_writes_per_s", "flush": "device_flushes_per_s"}
"""For each kind of I/O, the metric that counts it."""
_FEWEST = 30.0
"""Minimum number of I/Os in a trial for its mean to be shown."""


@dataclass(frozen=True, slots=True)
class RoleLatency:
    """Latency of one kind of I/O for one role of one system, over the system's trials."""

    name: str
    """Name of the system or configuration."""
    role: str
    direction: str
    """`read`, `write` or `flush`."""
    mean_s: Summary
    """Mean latency in the block layer, which includes time in the kernel's queue."""
    p99_s: Summary | None
    """99th percentile of the latency. The device's process measures it from the receipt of the I/O. The value is None
    for a zero-latency device."""
    per_s: Summary
    size_bytes: Summary | None

    @property
    def what(self) -> str:
        """Role and direction, such as `data read` or `temp write`."""
        return f"{self.role} {self.direction}"


def role_latencies(groups: Sequence[tuple[str, Sequence[Record]]]) -> tuple[RoleLatency, ...]:
    """Returns latencies by role, then direction, then group. `groups`: name and comparable trials of each system."""
    latencies = []
    for role in _ROLES:
        for direction in _RATES:
            for name, records in groups:
                one = _one(name, records, role, direction)
                if one is not None:
                    latencies.append(one)
    return tuple(latencies)


def _apart(record: Record, role: str, quantile: str) -> bool:
    """Returns whether the role has a separate partition on an emulated device. Engines that store WAL and data together
    have one partition for both. If the device was mounted by hand, its partitions are unknown, and the device is
    assumed to store data. Such a device is recognised by its percentile metric, which real devices do not have.
    """
    partitions = {one.role for device in record.system.layout.devices for one in device.partitions}
    return role in partitions or (role == "data" and quantile in record.metrics)


def _one(name: str, records: Sequence[Record], role: str, direction: str) -> RoleLatency | None:
    label = f"{{role={role}}}"
    quantile, rate = f"device_{direction}_latency_p99_s{label}", f"{_RATES[direction]}{label}"
    own = [
        record
        for record in records
        if _apart(record, role, quantile) and record.metrics.get(rate, 0.0) * record.elapsed_s >= _FEWEST
    ]

    def of(metric: str) -> Summary | None:
        return summarise([one.metrics[metric] for one in own if metric in one.metrics and sampled(one, metric)])

    mean, per_s = of(f"device_{direction}_latency_s{label}"), of(rate)
    if mean is None or per_s is None:
        return None
    return RoleLatency(name, role, direction, mean, of(quantile), per_s, of(f"device_{direction}_size_bytes{label}"))


# CPU time per read: the CPU time of an engine that reads from the device, minus the CPU time of the same engine with
# all data cached, divided by the number of reads. This is the cost of issuing and completing an I/O, and of evicting a
# page to make room. It is computed only for real devices, because emulating a device also costs CPU time.

_READS = "device_reads_per_s{role=data}"
_BYTES = "device_read_bytes_per_s{role=data}"
_FEWEST_READS = 1000.0
"""Minimum number of reads in a trial. The CPU time of fewer reads is less than the usual difference between two
trials."""
_MORE = 10.0
"""A system must do at least this many times as many reads as the system with cached data."""
_MOST_S = 1e-3
"""Maximum plausible CPU time of a read in seconds. A read costs microseconds, so a larger difference has another
cause."""


@dataclass(frozen=True, slots=True)
class ReadCost:
    """CPU cost of reads in one system, compared with the system that reads least. The trials of both systems are paired
    by block."""

    name: str
    cached: str
    reads: Summary
    size_bytes: Summary
    engine_s: Summary
    """CPU time of the engine's processes per read, which is positive in every pair and in its confidence interval."""
    whole_s: Summary | None
    """CPU time per read including kernel threads, interrupts and other programs. The value is None if not measured, or
    if the difference is larger than reads can explain.
    """


@dataclass(frozen=True, slots=True)
class _Used:
    reads: float
    bytes: float
    engine_s: float
    other_s: float | None


def read_costs(groups: Sequence[tuple[str, Sequence[Record]]]) -> tuple[ReadCost, ...]:
    """Returns the CPU cost of reads for each system. `groups`: name and comparable trials of the same work.

    Returns nothing unless one system has its data cached and another one reads them. A pair of systems is left out if
    it differs in more than the location of the data and the amount of data in memory.
    """
    known = [(name, used) for name, records in groups if (used := _by_block(records))]
    if len(known) < 2:
        return ()
    cached, least = min(known, key=lambda one: fmean([used.reads for used in one[1].values()]))
    like = {name: [_but_memory(record) for record in records] for name, records in groups}
    costs = [
        _cost(name, used, cached, least)
        for name, used in known
        if name != cached and all(one in like[cached] for one in like[name])
    ]
    return tuple(one for one in costs if one)


def _but_memory(record: Record) -> object:
    """Returns everything that determines CPU time, except the location of the data and the amount of memory. A
    different index, setting or number of clients would change CPU time more than reads do."""
    system = replace(record.system, label="", layout=Layout(), memory_bytes=None, memory_total_bytes=None)
    return system, work(record), replace(record.cell.load, cache="", seed=0)


def _by_block(records: Sequence[Record]) -> dict[int, _Used]:
    used = {}
    for record in records:
        metrics = record.metrics
        if record.system.layout.devices or "emulation_cpu_cores" in metrics:
            continue
        if _READS in metrics and _BYTES in metrics and "engine_cpu_s" in metrics:
            seconds = record.elapsed_s
            used[record.block] = _Used(
                metrics[_READS] * seconds, metrics[_BYTES] * seconds, metrics["engine_cpu_s"], _other_s(record)
            )
    return used


def _other_s(record: Record) -> float | None:
    """Returns the CPU seconds of the kernel and unknown programs. These seconds are computed from fractions of CPU time
    by comparison with the engine, whose fraction and CPU seconds are both known. Returns None if they are unknown."""
    if record.budget.server <= 0:
        return None
    return (record.budget.other + record.budget.kernel) / record.budget.server * record.metrics["engine_cpu_s"]


def _cost(name: str, used: dict[int, _Used], cached: str, least: dict[int, _Used]) -> ReadCost | None:
    pairs = [(one, least[block]) for block, one in sorted(used.items()) if block in least]
    more = [
        (one, other, one.reads - other.reads)
        for one, other in pairs
        if one.reads >= _FEWEST_READS and one.reads >= _MORE * other.reads
    ]
    reads = summarise([count for _, _, count in more])
    engine_s = summarise([(one.engine_s - other.engine_s) / count for one, other, count in more])
    size = summarise([(one.bytes - other.bytes) / count for one, other, count in more])
    if reads is None or engine_s is None or size is None:
        return None
    if not _of_reads(engine_s):
        return None
    whole = [
        (one.engine_s - other.engine_s + one.other_s - other.other_s) / count
        for one, other, count in more
        if one.other_s is not None and other.other_s is not None
    ]
    whole_s = summarise(whole)
    return ReadCost(name, cached, reads, size, engine_s, whole_s if whole_s and _of_reads(whole_s) else None)


def _of_reads(cost_s: Summary) -> bool:
    """Returns whether the CPU time per read is plausible. If not, the trials differ in more than reads."""
    least_s = cost_s.low if cost_s.interval is None else min(cost_s.low, cost_s.interval[0])
    return least_s > 0 and cost_s.high <= _MOST_S
