"""Which labs are measured by slices, and where the systems of a block lie that stand side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ironbench import engines, units, workloads
from ironbench.load.estimate import Content
from ironbench.machine import space
from ironbench.machine.fingerprint import fingerprint
from ironbench.model.lab import SCREEN, Lab
from ironbench.model.system import Load, Setup
from ironbench.words import counted
from ironbench.workloads import Workload

USUAL_S = 1.0
"""Length of a slice where nobody chose one."""
START_UP_S = 0.1
"""Driven and not measured at the start of each turn: processes were thawed, and their caches hold what others did."""
_CHANGE_S = 0.02
"""About how long it takes to freeze one system and thaw the next."""
OWN_BYTES = 256 << 20
"""Of memory, for each server besides its cache and its data: processes, connections, sorts."""


def rotations(load: Load, slice_s: float) -> int:
    """How many turns each system has in a block: so many that its slices are as long as a trial, together."""
    return max(1, round((load.duration_s or 0.0) / slice_s))


def besides_s(lab: Lab) -> float:
    """What all turns of a lab take besides their slices, about."""
    if lab.method.slice_s is None:
        return 0.0
    own = [setup for setup in lab.setups if not setup.skipped]
    turns = sum(rotations(setup.cell.load, lab.method.slice_s) for setup in own)
    return lab.method.blocks * turns * (START_UP_S + _CHANGE_S)


def apart(lab: Lab, setup: Setup) -> Setup:
    """The setup with a data directory that no other cell of the lab has."""
    data = setup.system.layout.data
    if data is None:
        return setup
    sharing = [one.cell.name for one in lab.setups if one.system.layout.data == data and not one.skipped]
    place = sharing.index(setup.cell.name) if setup.cell.name in sharing else 0
    if place == 0:
        return setup
    layout = replace(setup.system.layout, data=f"{data}-side-{place + 1}")
    return replace(setup, system=replace(setup.system, layout=layout))


def why_trials(lab: Lab, contents: Mapping[str, Content]) -> str:
    """Why the systems of this lab cannot take turns, in words; empty when they can."""
    setups = [setup for setup in lab.setups if not setup.skipped]
    for setup in setups:
        for why in _against(setup):
            return why if _of_all(setups, why) else f"{setup.cell.name}: {why}"
    for why in _against_lab(lab, setups, contents):
        return why
    return ""


def _of_all(setups: Sequence[Setup], why: str) -> bool:
    return all(next(_against(setup), "") == why for setup in setups)


def _against(setup: Setup) -> Iterator[str]:
    """What keeps one system from taking turns."""
    system, load, choice = setup.system, setup.cell.load, setup.choice
    engine, workload = engines.get(system.engine), workloads.get(choice.workload)
    if system.dsn is not None:
        yield "a server that ironbench did not start is not frozen"
    if system.layout.devices:
        yield "an emulated device does not stand still with its system"
    if system.commands:
        yield "commands change the machine between its systems"
    if engine.can("in client") or not engine.can("scripts") or not engine.can("data"):
        yield f"{engine.name} is no server that could be frozen between two turns"
    if _drives_otherwise(workload, system.engine, choice.options):
        yield f"workload {workload.name} is not made of short transactions that follow each other"
    if load.rate is not None or load.rate_share is not None or load.curve is not None:
        yield "its load has a rate or a curve, which goes on by the clock"
    if load.duration_s is None:
        yield "its trials end with their work and not by the clock"
    if load.cache in ("cold", "hot"):
        yield f'`cache = "{load.cache}"` is a state at the start, which turns do not keep'
    if load.workers:
        yield "its clients are workers of other processes"
    if load.warmup_auto:
        yield "a pilot of trials decides its warm-up"
    if setup.search is not None:
        yield "a search of trials decides its load"


def _drives_otherwise(workload: Workload, engine: str, options: Mapping[str, str]) -> bool:
    own_jobs = type(workload).jobs is not Workload.jobs
    work = workload.drives or workload.core_work(engine, options) is not None or workload.starts_from_copy
    return work or own_jobs or workload.units(options) is not None


def _against_lab(lab: Lab, setups: Sequence[Setup], contents: Mapping[str, Content]) -> Iterator[str]:
    """What keeps these systems from standing side by side."""
    if lab.design == SCREEN:
        yield "a screen has more systems than can stand side by side"
    if lab.method.crash:
        yield "the power of a system is cut after each trial"
    if lab.every_command:
        yield "commands change the machine between its systems"
    if len({setup.cell.load.duration_s for setup in setups}) > 1:
        yield "its cells are measured for different times"
    for role in ("log", "temp"):
        named = [place for setup in setups if (place := getattr(setup.system.layout, role)) is not None]
        if len(set(named)) < len(named):
            yield f"two systems would have their {role} in one directory, {named[0]}"
    data = {setup.system.layout.data for setup in setups}
    for place in sorted(filter(None, data)):
        if len(data) < len(setups) and Path(place).is_mount():
            yield f"{place} is a file system of its own, and systems side by side have a directory each"
    yield from _short_of(setups, contents)


def _short_of(setups: Sequence[Setup], contents: Mapping[str, Content]) -> Iterator[str]:
    """Memory, or space."""
    machine = fingerprint()
    there = min(machine.memory_bytes, machine.limits.memory_bytes or machine.memory_bytes)
    needed = sum(_memory_bytes(setup, contents[setup.cell.name]) for setup in setups)
    if needed > there:
        yield (
            f"{counted(len(setups), 'system')} side by side need about {units.memory(needed)} of memory, "
            f"there are {units.memory(there)}"
        )
    place = next((setup.system.layout.data for setup in setups if setup.system.layout.data), None)
    if place is None:
        return
    free = space.free_bytes(place)
    costs = [engines.get(setup.system.engine).traits.costs for setup in setups]
    sizes = [contents[setup.cell.name].bytes for setup in setups]
    wanted = sum(cost.empty_bytes + size + cost.log_of(size) for cost, size in zip(costs, sizes, strict=True))
    if wanted > free:
        yield (
            f"{counted(len(setups), 'system')} side by side need about {units.stored(wanted)} of space in {place}, "
            f"there are {units.stored(free)}"
        )


def _memory_bytes(setup: Setup, content: Content) -> int:
    """What it fills: its limit, or its cache, its files in the page cache, and its processes."""
    if setup.system.memory_total_bytes is not None:
        return setup.system.memory_total_bytes
    return (setup.system.memory_bytes or 0) + content.bytes + OWN_BYTES
