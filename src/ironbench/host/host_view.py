"""The machine as the doctor's probes see it: its files, a second of watching it, and things really tried."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ironbench.host.blocks import down_to_drives, read_block
from ironbench.host.fingerprint import container, virtualisation
from ironbench.host.mounts import all_mounts, block_name, device_number, mount_of
from ironbench.host.tree import Tree
from ironbench.model.machine import Block, Mount


class Attempts(Protocol):
    """What can only be known by trying. Each answers None when it works, else why it does not."""

    def io_uring(self) -> str | None: ...
    def fuse(self) -> str | None: ...
    def loop_device(self) -> str | None: ...
    def user_namespace(self) -> str | None: ...
    def cgroup(self, directory: Path) -> str | None:
        """Makes and removes an empty group below `directory`."""
        ...

    def wake_ups(self) -> list[float]:
        """How many seconds late each of some hundred timed wake-ups was; empty when it cannot be measured."""
        ...

    def syncs(self, directory: Path) -> list[float]:
        """Seconds that each of some 4 KiB writes with a sync took in `directory`; empty when it cannot be measured."""
        ...

    def free_bytes(self, directory: Path) -> tuple[int, int] | None:
        """Free for us, and size, of the file system that holds `directory`."""
        ...


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters of one moment."""

    cpu: dict[str, int]
    """Ticks of all cores by kind."""
    processes: dict[int, tuple[str, int]]
    """Process → its name, and ticks used."""
    swapped_pages: int
    runnable: int
    throttled: int
    """Times that a core slowed down for heat."""


@dataclass(frozen=True, slots=True)
class DirectoryView:
    """A directory to be judged, and what is under it."""

    directory: Path
    mount: Mount | None
    block: Block | None


@dataclass(frozen=True, slots=True)
class Ourselves:
    """The ironbench that looks."""

    build_profile: str | None
    """Of its core, e.g. `release`."""
    pids: frozenset[int] = frozenset()
    """Its processes, which are no other programs."""


@dataclass(frozen=True, slots=True)
class HostView:
    """Everything probes may look at. Tests make one from a copied tree and invented attempts."""

    tree: Tree
    places: tuple[DirectoryView, ...]
    attempts: Attempts
    before: Counters
    after: Counters
    ourselves: Ourselves
    virtual: str = "none"
    container: str = "none"

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Each device under the places once, with the devices it is made of, down to the drives."""
        by_name: dict[str, Block] = {}
        for place in self.places:
            if place.block is not None:
                for name in down_to_drives(place.block.name, self.tree):
                    by_name.setdefault(name, read_block(name, self.tree))
        return tuple(by_name.values())

    def ticks(self, kind: str) -> float:
        """Share of all cores' time of one kind while we watched."""
        total = sum(self.after.cpu.values()) - sum(self.before.cpu.values())
        return (self.after.cpu.get(kind, 0) - self.before.cpu.get(kind, 0)) / total if total > 0 else 0.0


def watch_host(
    tree: Tree,
    directories: tuple[Path, ...],
    attempts: Attempts,
    ourselves: Ourselves,
    watch_s: float = 1.0,
    sleep: Callable[[float], None] = time.sleep,
) -> HostView:
    """Watches the machine for `watch_s` seconds."""
    before = read_counters(tree)
    sleep(watch_s)
    return HostView(
        tree,
        tuple(place_of(directory, tree) for directory in directories),
        attempts,
        before,
        read_counters(tree),
        ourselves,
        virtualisation(tree),
        container(tree),
    )


def place_of(directory: Path, tree: Tree) -> DirectoryView:
    """The mount and device of a directory, or of its nearest parent that exists."""
    existing = directory
    if tree.real:
        existing = directory.absolute()
        while not existing.exists() and existing != existing.parent:
            existing = existing.parent
        existing = existing.resolve()
    mount = mount_of(existing, all_mounts(tree))
    number = device_number(mount, tree) if mount else None
    name = block_name(number, tree) if number else None
    return DirectoryView(existing, mount, read_block(name, tree) if name else None)


_KINDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def read_counters(tree: Tree) -> Counters:
    cpu: dict[str, int] = {}
    runnable = 0
    for line in (tree.read("/proc/stat") or "").splitlines():
        words = line.split()
        if words[0] == "cpu":
            cpu = {kind: int(ticks) for kind, ticks in zip(_KINDS, words[1:], strict=False)}
        elif words[0] == "procs_running":
            runnable = int(words[1])
    swapped = 0
    for line in (tree.read("/proc/vmstat") or "").splitlines():
        if line.startswith(("pswpin ", "pswpout ")):
            swapped += int(line.split()[1])
    throttled = sum(
        tree.integer(name) or 0 for name in tree.glob("/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_count")
    )
    return Counters(cpu, _processes(tree), swapped, runnable, throttled)


def _processes(tree: Tree) -> dict[int, tuple[str, int]]:
    used = {}
    for name in tree.names("/proc"):
        if name.isdigit() and (text := tree.read(f"/proc/{name}/stat")):
            words = text.rpartition(")")[2].split()
            if len(words) > 12:
                used[int(name)] = (text.partition("(")[2].rpartition(")")[0], int(words[11]) + int(words[12]))
    return used
