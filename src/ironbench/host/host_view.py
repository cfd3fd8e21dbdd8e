"""The input of the doctor's checks: a machine's files, its activity during one second, and tests of what it allows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ironbench.host.blocks import down_to_drives, read_block
from ironbench.host.fingerprint import container, virtualisation
from ironbench.host.mounts import all_mounts, block_name, device_number, mount_of
from ironbench.host.profiling import Restriction
from ironbench.host.tree import Tree
from ironbench.model.machine import Block, Mount


class CapabilityTests(Protocol):
    """Tests of what the machine allows. A method with the result type `str | None` returns None if the operation works,
    and otherwise the reason why it fails."""

    def io_uring(self) -> str | None: ...
    def fuse(self) -> str | None: ...
    def loop_device(self) -> str | None: ...
    def user_namespace(self) -> str | None: ...
    def profiles(self, kind: str) -> Sequence[Restriction]:
        """Returns the reasons why stacks of this kind (`cpu` or `wait`) cannot be sampled. The result is empty if
        sampling works."""
        ...

    def cgroup(self, directory: Path) -> str | None:
        """Creates and removes an empty group below `directory`."""
        ...

    def wake_ups(self) -> list[float]:
        """Returns the delays in seconds of a few hundred timed wake-ups. Returns an empty list if they cannot be
        measured."""
        ...

    def syncs(self, directory: Path) -> list[float]:
        """Returns the durations in seconds of some 4 KiB writes with a sync in `directory`. Returns an empty list if
        they cannot be measured."""
        ...

    def free_bytes(self, directory: Path) -> tuple[int, int] | None:
        """Returns the free space for this user, and the size, of the file system of `directory`."""
        ...


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters of the machine at one time."""

    cpu: dict[str, int]
    """For each kind of CPU time, such as `idle`, the clock ticks of all cores together."""
    processes: dict[int, tuple[str, int]]
    """For each process id: the name of the process, and the clock ticks of CPU time that the process has used."""
    swapped_pages: int
    runnable: int
    throttled: int
    """Number of times that a core was throttled because of heat."""


@dataclass(frozen=True, slots=True)
class DirectoryView:
    """A directory to examine, with its mount and device."""

    directory: Path
    mount: Mount | None
    block: Block | None


@dataclass(frozen=True, slots=True)
class OwnProcesses:
    """The ironbench processes that run the checks."""

    build_profile: str | None
    """Build profile of ironbench's core, such as `release`."""
    pids: frozenset[int] = frozenset()
    """Ids of ironbench's processes, which do not count as other programs."""


@dataclass(frozen=True, slots=True)
class HostView:
    """The state of the machine that the doctor's checks examine. Tests create one from a copied tree of files and
    simulated capability tests."""

    tree: Tree
    places: tuple[DirectoryView, ...]
    attempts: CapabilityTests
    before: Counters
    after: Counters
    ourselves: OwnProcesses
    virtual: str = "none"
    container: str = "none"

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The block devices that contain the directories, and all devices below them down to the drives, without
        duplicates."""
        by_name: dict[str, Block] = {}
        for place in self.places:
            if place.block is not None:
                for name in down_to_drives(place.block.name, self.tree):
                    by_name.setdefault(name, read_block(name, self.tree))
        return tuple(by_name.values())

    def share_of_time(self, kind: str) -> float:
        """Returns how much of the time of all cores the kernel counted as `kind`, such as `idle`. The result is a
        fraction, for the period in which the machine was watched."""
        total = sum(self.after.cpu.values()) - sum(self.before.cpu.values())
        return (self.after.cpu.get(kind, 0) - self.before.cpu.get(kind, 0)) / total if total > 0 else 0.0


def watch_host(
    tree: Tree,
    directories: tuple[Path, ...],
    attempts: CapabilityTests,
    ourselves: OwnProcesses,
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
    """Returns the mount and the device of a directory, or of its nearest existing ancestor."""
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
