"""CPU and device utilisation of this machine, for open pages."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from ironbench.host.tree import Tree

_SECTOR = 512
"""Bytes per sector in /proc/diskstats, independent of the device's sector size
(Documentation/admin-guide/iostats.rst)."""
_VIRTUAL_DEVICES = ("loop", "ram", "dm-", "zram", "sr")
"""Name prefixes of virtual devices that are left out."""


@dataclass(frozen=True, slots=True)
class _MachineCounters:
    at_s: float
    cpu: tuple[int, ...]
    devices: dict[str, tuple[int, int, int]]
    """Sectors read, sectors written, and milliseconds busy, by the name of the device."""


class MachineMeter:
    """Computes utilisation from the difference of two readings of the kernel's counters."""

    def __init__(self, tree: Tree | None = None) -> None:
        self._tree = tree or Tree()
        self._last: _MachineCounters | None = None
        self._shown: dict[str, Any] = {}

    def now(self, now_s: float | None = None) -> dict[str, Any]:
        """Returns `busy` and `steal` (fractions of all cores) and `devices` (name, bytes read and written per second,
        fraction of time busy).

        The first call returns an empty dict. Calls within about a second return the same values, so that many open
        pages cost no more than one.
        """
        at_s = time.monotonic() if now_s is None else now_s
        if self._last is not None and at_s - self._last.at_s < 0.9:
            return self._shown
        after = self._counters(at_s)
        before, self._last = self._last, after
        self._shown = _machine_use(before, after) if before is not None else {}
        return self._shown

    def _counters(self, at_s: float) -> _MachineCounters:
        first = (self._tree.read("/proc/stat") or "").partition("\n")[0].split()[1:9]
        devices = {}
        for line in (self._tree.read("/proc/diskstats") or "").splitlines():
            words = line.split()
            if len(words) > 12 and not words[2].startswith(_VIRTUAL_DEVICES):
                devices[words[2]] = int(words[5]), int(words[9]), int(words[12])
        return _MachineCounters(at_s, tuple(map(int, first)), devices)


def _machine_use(before: _MachineCounters, after: _MachineCounters) -> dict[str, Any]:
    span_s = after.at_s - before.at_s
    ticks = [b - a for a, b in zip(before.cpu, after.cpu, strict=False)]
    total = sum(ticks) or 1
    moved = []
    for name, (read, written, busy_ms) in after.devices.items():
        was = before.devices.get(name, (read, written, busy_ms))
        rate = [(now - then) / span_s for now, then in zip((read, written, busy_ms), was, strict=True)]
        if any(rate):
            share = min(1.0, rate[2] / 1000)
            moved.append({"name": name, "read": rate[0] * _SECTOR, "written": rate[1] * _SECTOR, "busy": share})
    # The kernel counts the I/O of a partition also for its disk, so only disks are shown.
    whole = [one for one in moved if not any(_is_part(str(one["name"]), other) for other in after.devices)]
    idle = sum(ticks[3:5])
    return {"busy": 1 - idle / total, "steal": ticks[7] / total if len(ticks) > 7 else 0.0, "devices": whole}


def _is_part(name: str, disk: str) -> bool:
    """Returns whether the device with this name is a partition of the disk.

    If a disk's name ends in a digit, the kernel writes `p` before the partition number (Linux, block/partitions/core.c,
    `add_partition`): nvme0n1p1 is a partition of nvme0n1, and nvme0n10 is another disk.
    """
    before = f"{disk}p" if disk[-1:].isdigit() else disk
    return name.startswith(before) and name[len(before) :].isdigit()
