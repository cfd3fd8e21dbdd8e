"""Whether the machine does anything else right before a trial, and waiting until it does not."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ironbench import units
from ironbench.host.tree import Tree
from ironbench.model.limits import BUSY
from ironbench.model.note import Note, note

DEVICE_BYTES_PER_S = 5e6
"""Read and written on all devices together: about what one hard disk does at random."""
DIRTY_BYTES = 256 << 20
"""Waiting in the page cache to be written: it will be, during the trial."""
INTERVAL_S = 0.25
"""How long activity is measured at a time."""
_SECTOR_BYTES = 512
"""The unit of /proc/diskstats, whatever the device's own (Linux: Documentation/admin-guide/iostats.rst)."""


@dataclass(frozen=True, slots=True)
class Activity:
    """What the machine did between two moments."""

    busy: float
    """Share of all cores that were neither idle nor waiting for a device."""
    device_bytes_per_s: float
    in_flight: int
    """Requests that devices had not answered at the end."""
    dirty_bytes: int

    @property
    def above_limits(self) -> dict[str, float]:
        """The values above their limits, the others as 0; empty when the machine is quiet."""
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
    """Returns when the machine is quiet, or after `limit_s` with a warning; as conditions and warnings of a record.

    Call it when neither ironbench nor its engine has anything to do. 0 looks once and does not wait.
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
    # user nice system idle iowait irq softirq steal (proc_stat(5)); guest time is within user.
    ticks = [int(word) for word in (tree.read("/proc/stat") or "cpu 0").splitlines()[0].split()[1:9]]
    idle = sum(ticks[3:5])
    memory = tree.table("/proc/meminfo")
    sectors, in_flight = _devices(tree)
    dirty = memory.get("Dirty", 0) + memory.get("Writeback", 0)
    return _Counters(at_s, sum(ticks) - idle, sum(ticks), sectors, in_flight, dirty)


def _devices(tree: Tree) -> tuple[int, int]:
    """Sectors read and written, and requests in flight, of whole devices: partitions would count twice."""
    sectors = in_flight = 0
    for line in (tree.read("/proc/diskstats") or "").splitlines():
        words = line.split()
        if len(words) < 12 or not tree.exists(f"/sys/block/{words[2].replace('/', '!')}"):
            continue
        if tree.names(f"/sys/block/{words[2].replace('/', '!')}/slaves"):
            continue  # a device made of others: those are counted
        sectors += int(words[5]) + int(words[9])
        in_flight += int(words[11])
    return sectors, in_flight
