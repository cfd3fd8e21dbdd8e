"""I/O of the block devices under `data`, `temp` and `log` (Linux: Documentation/block/stat.rst).

The observer uses /proc/self/mountinfo to map each role's directory to its device. The observer reads the device's
counters from /sys/dev/block, which has the same numbers as /proc/diskstats, but a separate file for each device. Roles
on the same device show the same numbers. A role in memory, on a network file system or on ZFS has no visible block
device, and therefore no metrics.
"""

from __future__ import annotations

from functools import partial

from ironbench.host.mounts import all_mounts, device_number, mount_of
from ironbench.host.tree import Tree
from ironbench.model.observation import Observation, Series, Source
from ironbench.model.observer import Samples
from ironbench.model.points import CounterGrowth, Values, growth, points, present, rate_series, steps
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
"""For each counter: its name, its position in the line, and the factor to base units. The kernel counts flushes since
Linux 5.5, and only for whole disks."""
_COUNTS = {
    "device_reads_per_s": "reads",
    "device_writes_per_s": "writes",
    "device_flushes_per_s": "flushes",
}
_VOLUMES = {
    "device_read_bytes_per_s": ("read_bytes", "reads"),
    "device_write_bytes_per_s": ("write_bytes", "writes"),
}
_LATENCIES = {
    "device_read_latency_s": ("read_s", "reads"),
    "device_write_latency_s": ("write_s", "writes"),
    "device_flush_latency_s": ("flush_s", "flushes"),
}
_TIMES = {"device_utilisation_share": "busy_s", "device_queue_depth": "queued_s"}
"""`_COUNTS`, `_VOLUMES`, `_LATENCIES` and `_TIMES` map the name of a metric to its counter. `_VOLUMES` and `_LATENCIES`
also contain the counter of the requests. Numbers of requests are rounded to whole numbers, because they are
interpolated: both ends of the window are between two samples."""


class Disk:
    name = "disk"
    doc = (
        "Reads, writes, bytes, latency, queue depth and utilisation of the devices that store "
        "data, WAL and temporary files"
    )

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
            whole = _metrics(grown)
            metrics |= {f"{name}{label}": value for name, value in whole.items()}
            for name in whole:
                series.append(rate_series(f"{name}{label}", each, partial(_metric, name=name)))
        return Observation(metrics, tuple(series))


def role_devices(directories: dict[str, str], machine: Tree) -> dict[str, str]:
    """Returns for each role, such as `data`, the number `major:minor` of the block device that contains the role's
    directory. Roles without a visible device are left out."""
    mounts = all_mounts(machine)
    numbers: dict[str, str] = {}
    for role, directory in directories.items():
        mount = mount_of(machine.resolved(directory), mounts)
        number = device_number(mount, machine) if mount else None
        if number and machine.exists(f"/sys/dev/block/{number}/stat"):
            numbers[role] = number
    return numbers


def _parse(text: str) -> Values:
    words = text.split()
    return {name: float(words[place]) * unit for name, place, unit in _FIELDS if place < len(words)}


def _metric(grown: CounterGrowth, name: str) -> float | None:
    return _metrics(grown).get(name)


def _metrics(grown: CounterGrowth) -> dict[str, float]:
    values: dict[str, float | None] = {
        name: grown.count_rate(counter) for name, counter in _COUNTS.items() if counter in grown.by
    }
    values |= {
        name: grown.volume(size, counter) / grown.span_s
        for name, (size, counter) in _VOLUMES.items()
        if size in grown.by
    }
    # The kernel counts the duration of requests in whole milliseconds (Documentation/admin-guide/iostats.rst). If all
    # requests were fast, the time is 0 and the latency is left out.
    values |= {
        name: grown.ratio(time, counter)
        for name, (time, counter) in _LATENCIES.items()
        if grown.by.get(time) and grown.count(counter)
    }
    values |= {name: grown.rate(counter) for name, counter in _TIMES.items() if counter in grown.by}
    return present(values)


OBSERVER = Disk()
