"""Checks before a trial whether other programs keep the machine busy, and waits until it is idle."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ironbench import units
from ironbench.host.tree import Tree
from ironbench.model.judging_limits import BUSY
from ironbench.model.note import Note, note

DEVICE_BYTES_PER_S = 5e6
"""Limit for reads and writes on all devices together, in bytes per second: about the random I/O of one hard disk."""
DIRTY_BYTES = 256 << 20
"""Limit for dirty pages in the page cache, in bytes. Dirty pages would be written during the trial."""
INTERVAL_S = 0.25
"""Length of one measurement of the activity, in seconds."""
_SECTOR_BYTES = 512
"""Size of a sector in /proc/diskstats, whatever the device's sector size is (Linux:
Documentation/admin-guide/iostats.rst)."""


@dataclass(frozen=True, slots=True)
class Activity:
    """Activity of the machine between two times."""

    busy: float
    """Share of all cores' time that was neither idle nor waiting for a device."""
    device_bytes_per_s: float
    in_flight: int
    """Requests in flight at the end of the interval."""
    dirty_bytes: int

    @property
    def above_limits(self) -> dict[str, float]:
        """The activity of the machine, with 0 for each value that is within its limit. The dict is empty if no value
        exceeds its limit, which means that the machine is idle."""
        moving = self.device_bytes_per_s > DEVICE_BYTES_PER_S
        found = {
            "busy": self.busy if self.busy > BUSY else 0.0,
            "device_bytes_per_s": self.device_bytes_per_s if moving else 0.0,
            "in_flight": self.in_flight if moving else 0,
            "dirty_bytes": self.dirty_bytes if self.dirty_bytes > DIRTY_BYTES else 0,
        }
        return found if any(found.values()) else {}


def wait(
    limit_s: float,
    tree: Tree | None = None,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> tuple[dict[str, str], tuple[Note, ...]]:
    """Waits until the machine is idle, but no longer than `limit_s`. Returns conditions and warnings for the record.

    Must be called when neither ironbench nor its engine is working. With a limit of 0, measures once and does not wait.
    """
    tree = tree or Tree()
    begin = now()
    before = _read(tree, begin)
    while True:
        sleep(INTERVAL_S)
        after = _read(tree, now())
        activity = _activity(before, after).above_limits
        waited_s = now() - begin
        if not activity:
            return {"quiet": "yes" if waited_s < 2 * INTERVAL_S else f"after {units.span(waited_s)}"}, ()
        if waited_s >= limit_s:
            return {"quiet": "no"}, (note("not-quiet", waited_s=waited_s, **activity),)
        before = after


@dataclass(frozen=True, slots=True)
class _Counters:
    at_s: float
    busy: int
    ticks: int
    sectors: int
    in_flight: int
    dirty_bytes: int


def _activity(before: _Counters, after: _Counters) -> Activity:
    spent_s = max(after.at_s - before.at_s, 1e-6)
    ticks = after.ticks - before.ticks
    return Activity(
        busy=(after.busy - before.busy) / ticks if ticks > 0 else 0.0,
        device_bytes_per_s=(after.sectors - before.sectors) * _SECTOR_BYTES / spent_s,
        in_flight=after.in_flight,
        dirty_bytes=after.dirty_bytes,
    )


def _read(tree: Tree, at_s: float) -> _Counters:
    # The fields are user, nice, system, idle, iowait, irq, softirq and steal (proc_stat(5)). The next field, guest
    # time, is left out because it is already included in user.
    ticks = [int(word) for word in (tree.read("/proc/stat") or "cpu 0").splitlines()[0].split()[1:9]]
    idle = sum(ticks[3:5])
    memory = tree.table("/proc/meminfo")
    sectors, in_flight = _devices(tree)
    dirty = memory.get("Dirty", 0) + memory.get("Writeback", 0)
    return _Counters(at_s, sum(ticks) - idle, sum(ticks), sectors, in_flight, dirty)


def _devices(tree: Tree) -> tuple[int, int]:
    """Returns the number of sectors read and written, and the number of requests in flight. Only whole devices are
    counted, because the counters of a device include those of its partitions."""
    sectors = in_flight = 0
    for line in (tree.read("/proc/diskstats") or "").splitlines():
        words = line.split()
        if len(words) < 12 or not tree.exists(f"/sys/block/{words[2].replace('/', '!')}"):
            continue
        if tree.names(f"/sys/block/{words[2].replace('/', '!')}/slaves"):
            continue  # the devices below this device are already counted
        sectors += int(words[5]) + int(words[9])
        in_flight += int(words[11])
    return sectors, in_flight
