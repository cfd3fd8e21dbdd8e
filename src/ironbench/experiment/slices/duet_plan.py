"""Which labs by slices may be a duet: two systems at once, each on one half of the cores."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ironbench import workloads
from ironbench.experiment import size
from ironbench.experiment.slices import slice_plan
from ironbench.load.estimate import Content
from ironbench.machine import mounts, space
from ironbench.machine.blocks import down_to_drives
from ironbench.machine.cores import cores, halves
from ironbench.machine.fingerprint import fingerprint
from ironbench.machine.tree import Tree
from ironbench.model.lab import Lab
from ironbench.model.system import Setup
from ironbench.units import stored
from ironbench.words import counted

Half = tuple[int, ...]


def cpus() -> tuple[Half, Half] | None:
    """The two halves of the cores that this process may use; None: there is one core."""
    return halves(Tree(), os.sched_getaffinity(0))


def why_turns(lab: Lab, contents: Mapping[str, Content]) -> str:
    """Why the systems of this lab by slices cannot be driven at once, in words; empty when they can."""
    return next(_against(lab, contents), "")


def asked(lab: Lab, contents: Mapping[str, Content]) -> Lab:
    """A lab by slices for which a duet was asked."""
    why = why_turns(lab, contents)
    return replace(lab, method=replace(lab.method, duet=not why, why_turns=why))


def offered(lab: Lab) -> bool:
    """Whether one could be asked for in this lab by slices."""
    contents = {setup.cell.name: size.content(setup, lab.method.restore) for setup in lab.possible}
    return not why_turns(lab, contents)


def _against(lab: Lab, contents: Mapping[str, Content]) -> Iterator[str]:
    setups = [slice_plan.apart(lab, setup) for setup in lab.possible]
    if not slice_plan.frozen(lab):
        yield "a server that ironbench did not start is not held to one half of the cores"
    if len(setups) != 2:
        yield f"a duet has two systems, and this lab {len(setups)}"
    for setup in setups:
        for option in ("server_cpus", "client_cpus"):
            if getattr(setup.system, option) is not None:
                yield f"limits.{option} names CPUs, and systems of a duet exchange theirs"
    if cpus() is None:
        there = counted(len(cores(Tree(), os.sched_getaffinity(0))), "core")
        yield f"two systems at once need a core each, and there is {there}"
    quota = fingerprint().limits.cpus
    if quota is not None and quota < len(os.sched_getaffinity(0)):
        yield f"both would share a quota of {quota:g} cores' worth of CPU time"
    if any(setup.system.layout.devices for setup in setups):
        yield "an emulated device is a program that answers by the clock, and needs CPUs beside those of its system"
    yield from _sharing(lab, setups, contents)


def _sharing(lab: Lab, setups: Sequence[Setup], contents: Mapping[str, Content]) -> Iterator[str]:
    """A device, on which each would wait for the other."""
    sizes = [contents[setup.cell.name].bytes for setup in setups]
    read = slice_plan.evicting(lab, contents) != ""
    used = [
        _devices(setup) if read or _works_on_devices(setup, size) else set()
        for setup, size in zip(setups, sizes, strict=True)
    ]
    for device in sorted(set.intersection(*used)) if used else ():
        yield (
            f"both would work on one device, {device}, and wait for each other there: put their data "
            f"({stored(sum(sizes))} together) into memory, or on a device each"
        )


def _works_on_devices(setup: Setup, data_bytes: int) -> bool:
    """Whether it writes, or reads more than its memory holds."""
    limit = setup.system.memory_total_bytes
    writes = workloads.get(setup.choice.workload).writes(setup.choice.options)
    return writes or (limit is not None and data_bytes > limit)


def _devices(setup: Setup) -> set[str]:
    """Names of those that hold its files; none where they are in memory."""
    layout = setup.system.layout
    places = {"data": layout.data, "log": layout.log, "temp": layout.temp}
    own = {place for role, place in places.items() if place is not None and role not in setup.system.ideal}
    devices = {device for place in own if (device := _device(place, Tree()))}
    # Two logical volumes may lie on one drive.
    return {drive for device in devices for drive in down_to_drives(device, Tree())}


def _device(place: str, tree: Tree) -> str:
    mount = mounts.mount_of(space.existing(place).resolve(), mounts.all_mounts(tree))
    if mount is None or mounts.in_memory(mount):
        return ""
    number = mounts.device_number(mount, tree)
    return (mounts.block_name(number, tree) if number else None) or mount.source
