"""What the block devices under `data`, `temp` and `log` do (Linux: Documentation/block/stat.rst).

Each role's directory is led to its device by /proc/self/mountinfo, and the device's own counters are read from
/sys/dev/block: the figures of /proc/diskstats, one device at a time. Roles on one device show the same figures. A role
in memory, on a network file system or on ZFS has no block device to see, and no metrics.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ironbench.machine.mounts import all_mounts, device_number, mount_of
from ironbench.machine.tree import Tree
from ironbench.model.observation import Observation, Series, Source
from ironbench.model.observer import Samples
from ironbench.model.points import Growth, Values, growth, points, present, rate_series, steps
from ironbench.model.session import Session

_PREFIX = "disk."
_FIELDS = (
    ("reads", 0, 1.0),
    ("read_bytes", 2, 512.0),
    ("read_s", 3, 1e-3),
    ("writes", 4, 1.0),
    ("write_bytes", 6, 512.0),
    ("write_s", 7, 1e-3),
    ("busy_s", 9, 1e-3),
    ("queued_s", 10, 1e-3),
    ("flushes", 15, 1.0),
    ("flush_s", 16, 1e-3),
)
"""Counter, its place in the line, its unit. Flushes are there since Linux 5.5, and for whole disks only."""
_METRICS = (
    ("device_reads_per_s", "reads", None),
    ("device_read_bytes_per_s", "read_bytes", None),
    ("device_read_latency_s", "read_s", "reads"),
    ("device_writes_per_s", "writes", None),
    ("device_write_bytes_per_s", "write_bytes", None),
    ("device_write_latency_s", "write_s", "writes"),
    ("device_flushes_per_s", "flushes", None),
    ("device_flush_latency_s", "flush_s", "flushes"),
    ("device_utilisation_share", "busy_s", None),
    ("device_queue_depth", "queued_s", None),
)
"""Metric, counter, and the counter it is divided by (None: by time)."""


class Disk:
    name = "disk"
    doc = "Reads, writes, bytes, latency, queue and utilisation of the device under each role"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        return tuple(
            Source(f"{_PREFIX}{role}", "file", f"/sys/dev/block/{number}/stat")
            for role, number in role_devices(session.directories(), machine).items()
        )

    def parse(self, samples: Samples, window_s: float) -> Observation:
        metrics: dict[str, float] = {}
        series: list[Series] = []
        for source in samples:
            if not source.startswith(_PREFIX):
                continue
            label = f"{{role={source.removeprefix(_PREFIX)}}}"
            readings = points(samples[source], _parse)
            if (grown := growth(readings, window_s)) is None:
                continue
            each = steps(readings)
            whole = present({f"{name}{label}": _value(grown, over, under) for name, over, under in _METRICS})
            metrics.update(whole)
            for name, over, under in _METRICS:
                if f"{name}{label}" in whole:
                    series.append(rate_series(f"{name}{label}", each, partial(_value, over=over, under=under)))
        return Observation(metrics, tuple(series))


def role_devices(directories: dict[str, str], machine: Tree) -> dict[str, str]:
    """Role → `major:minor` of the block device under its directory, for those that have one to see."""
    mounts = all_mounts(machine)
    numbers: dict[str, str] = {}
    for role, directory in directories.items():
        mount = mount_of(Path(directory).resolve() if machine.real else directory, mounts)
        number = device_number(mount, machine) if mount else None
        if number and machine.exists(f"/sys/dev/block/{number}/stat"):
            numbers[role] = number
    return numbers


def _parse(text: str) -> Values:
    words = text.split()
    return {name: float(words[place]) * unit for name, place, unit in _FIELDS if place < len(words)}


def _value(grown: Growth, over: str, under: str | None) -> float | None:
    if over not in grown.by:
        return None
    if under is None:
        return grown.rate(over)
    # The kernel shows whole milliseconds (Documentation/admin-guide/iostats.rst): fast requests show none of it.
    return grown.ratio(over, under) if grown.by[over] else None


OBSERVER = Disk()
