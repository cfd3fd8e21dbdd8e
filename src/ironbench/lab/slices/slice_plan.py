"""Decides which labs use slices, and where to store the data of systems that run at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ironbench import catalogue, engines, units, workloads
from ironbench.devices import arrange
from ironbench.engines import ideal
from ironbench.errors import InputError
from ironbench.host import data_dirs as own_place
from ironbench.host import space
from ironbench.host.fingerprint import fingerprint
from ironbench.lab.data import data_key, data_location
from ironbench.model.lab import SCREEN, Lab
from ironbench.model.system import Load, Setup
from ironbench.plan.blocks import OBSERVED_S
from ironbench.plan.budget import LabTimes
from ironbench.trial.load.estimate import Content
from ironbench.words import counted
from ironbench.workloads import Workload

USUAL_S = 1.0
"""Slice length in seconds that is used until a pilot has chosen one."""
LENGTHS_S = (0.5, 1.0, 2.0, 5.0)
"""Slice lengths in seconds from which a pilot chooses."""
LEAST_TURNS = 5
"""Minimum number of turns of each system in a block. With fewer turns, the machine's noise would not affect the systems
equally. This number fits into the shortest trials that a budget chooses (`plan.budget.LENGTHS_S`) if turns have the
usual length.
"""
EARLY_S, LATE_S = 0.5, 0.8
"""Lengths in seconds of the pilot's two measurements. The first follows the start-up of the system. The second shows
the speed of the system some time later."""
AT_WORK_S = 0.3
"""Seconds between the pilot's two measurements. In this time, the clients reach different points of their
transactions."""
START_UP_S = 0.1
"""Seconds at the start of each turn that are not measured. In this time, the processes have just been resumed, and CPU
caches contain other systems' data."""
PILOT_TURNS = 3
"""How often the pilot measures each system, in the first block."""
CHANGE_S = 0.02
"""Approximate seconds for pausing one system and resuming the next."""
_PILOTED_S = START_UP_S + EARLY_S + AT_WORK_S + LATE_S + CHANGE_S
"""Seconds that one measurement of a system takes in the pilot."""
OWN_BYTES = 256 << 20
"""Memory that each server uses in addition to cache and data, for processes, connections and sorts."""


def rotations(load: Load, slice_s: float) -> int:
    """Returns the number of turns of each system in a block. The number is chosen so that a system's slices add up to
    the duration of a trial."""
    return max(1, round((load.duration_s or 0.0) / slice_s))


def fits(duration_s: float, slice_s: float) -> bool:
    """Returns whether a duration is long enough for the minimum number of turns."""
    return duration_s * (1 + 1e-9) >= LEAST_TURNS * slice_s


def longest(duration_s: float) -> float:
    """Returns the longest slice that a pilot may choose if a system's slices take `duration_s` in total. A system must
    have at least `LEAST_TURNS` slices. Returns the shortest possible length if no length satisfies this."""
    return next((length for length in reversed(LENGTHS_S) if fits(duration_s, length)), LENGTHS_S[0])


def fitted(lab: Lab) -> Lab:
    """Returns the lab with a slice length. If a pilot will choose it, the plan uses an assumed length."""
    if not lab.method.slice_piloted:
        return lab
    duration_s = next(setup.cell.load.duration_s or 0.0 for setup in lab.measurable)
    return replace(lab, method=replace(lab.method, slice_s=min(USUAL_S, longest(duration_s))))


def costing(lab: Lab, costs: LabTimes) -> LabTimes:
    """Adds two kinds of time to the estimate: that of the pilot, and that between turns."""
    slice_s = lab.method.slice_s
    if slice_s is None:
        return costs
    pilot_s = len(lab.measurable) * PILOT_TURNS * _PILOTED_S if lab.method.slice_piloted else 0.0
    return replace(
        costs,
        turning=(START_UP_S + CHANGE_S) / slice_s,
        pilots_s=costs.pilots_s + pilot_s,
        observed_s=_observed_s(costs) if lab.method.observed else 0.0,
    )


def _observed_s(costs: LabTimes) -> float:
    return sum(costs.around_s) + sum(min(own or OBSERVED_S, OBSERVED_S) for own in costs.own_s)


def placed(lab: Lab) -> Sequence[Setup]:
    """Returns the setups of all measured configurations. If their systems run at the same time, each has its own
    directories."""
    own = lab.measurable
    return own if lab.method.slice_s is None else [with_own_directories(lab, setup) for setup in own]


def with_own_directories(lab: Lab, setup: Setup) -> Setup:
    """Returns the setup with its own directories for data, emulated devices and files in memory. Configurations before
    it in the lab do not use these directories."""
    own = lab.measurable
    place = next((number for number, one in enumerate(own) if one.cell.name == setup.cell.name), 0)
    taken = {directory for one in own[:place] for directory in directories(one)}
    ending = f"-side-{place + 1}"
    layout = setup.system.layout
    if layout.data is None or setup.system.dsn is not None or not taken & directories(setup):
        return setup

    def moved(directory: str | None) -> str | None:
        if directory in layout.emulated:
            path = Path(str(directory))
            return str(Path(f"{path.parent}{ending}", path.name))
        for part in setup.system.ideal:
            if layout.data and directory == ideal.directory(layout.data, part):
                return ideal.directory(f"{layout.data}{ending}", part)
        return f"{directory}{ending}" if directory == layout.data else directory

    running = tuple(
        replace(one, partitions=tuple(replace(part, directory=str(moved(part.directory))) for part in one.partitions))
        for one in layout.devices
    )
    places = {role: moved(getattr(layout, role)) for role in ("data", "temp", "log")}
    return replace(setup, system=replace(setup.system, layout=replace(layout.at(places), devices=running)))


def directories(setup: Setup) -> set[str]:
    """Returns the data directory of the system, and its directories on emulated devices."""
    layout = setup.system.layout
    return {*layout.emulated, *filter(None, (layout.data,))}


def why_trials(lab: Lab, contents: Mapping[str, Content]) -> str:
    """Returns the reason why the systems of this lab cannot be interleaved. Returns an empty text if they can be
    interleaved."""
    setups = lab.measurable
    for setup in setups:
        for why in _against(setup):
            return why if _of_all(setups, why) else f"{setup.cell.name}: {why}"
    for why in _against_lab(lab, setups, contents):
        return why
    return ""


def _of_all(setups: Sequence[Setup], why: str) -> bool:
    return all(next(_against(setup), "") == why for setup in setups)


def _against(setup: Setup) -> Iterator[str]:
    """Yields reasons why one system cannot be interleaved."""
    system, load, choice = setup.system, setup.cell.load, setup.choice
    engine, workload = engines.get(system.engine), workloads.get(choice.workload)
    if system.control:
        yield "ironbench may change settings of the server's machine for each trial"
    elif system.server:
        yield "the server's machine is sampled at fixed intervals and not per slice"
    if system.commands:
        yield "a command changes the machine for one of the systems, but all systems of a block are up at the same time"
    if engine.can("in client") or not engine.can("scripts") or not engine.can("data"):
        yield f"{engine.name} is not a server that can be paused between slices"
    if workload.connections(load.clients, choice.options) != load.clients:
        yield f"workload {workload.name} has background work that runs on a timer between transactions"
    if workload.rests(choice.options):
        yield f"clients of workload {workload.name} wait between transactions, which slices do not preserve"
    if _drives_otherwise(workload, system.engine, choice.options):
        yield f"workload {workload.name} does not consist of short transactions in succession"
    if system.dsn is not None and workload.chooses_new_keys(choice.options):
        yield f"two systems on one server would insert the same keys for workload {workload.name}"
    if load.rate is not None or load.rate_share is not None or load.curve is not None:
        yield "the load has a target rate or a load curve, and its schedule cannot be paused"
    if load.duration_s is None:
        yield "the trials have no duration: they end when their work is done"
    if load.cache == "cold":
        yield f'`cache = "{load.cache}"` is the state at the start of a trial, and slices do not preserve that state'
    if load.reconnect or load.reconnect_on_loss:
        yield "clients open new connections, but slices keep connections open"
    if load.workers:
        yield "clients run in worker processes"
    if load.warmup_auto:
        yield "the warm-up is determined by a pilot trial"
    if setup.search is not None:
        yield "the load is determined by a search"


def _drives_otherwise(workload: Workload, engine: str, options: Mapping[str, str]) -> bool:
    work = workload.drives or workload.core_work(engine, options) is not None or workload.starts_from_copy
    return work or workload.units(options) is not None


def _against_metrics(lab: Lab, setups: Sequence[Setup]) -> Iterator[str]:
    """Yields reasons that concern metrics: a verdict or claim needs a metric that records of slices do not contain."""
    cells = {setup.cell.name for setup in setups}
    asked = [lab.method.metric, *(claim.metric for claim in lab.claims if not cells.isdisjoint(claim.cells))]
    for metric in asked:
        known = catalogue.metric(metric)
        if not (known.workloads or known.per_slice):
            yield f"{metric} comes from observers ({known.source}), which sample at fixed intervals and not per slice"


def _against_lab(lab: Lab, setups: Sequence[Setup], contents: Mapping[str, Content]) -> Iterator[str]:
    """Yields reasons why these systems cannot run at the same time."""
    if lab.design == SCREEN:
        yield "a screen has more systems than can run side by side"
    if lab.method.crash:
        yield "the power of a system is cut after each trial"
    if lab.every_command:
        yield "a command changes the machine for one of the systems, but all systems of a block are up at the same time"
    if len({setup.cell.load.duration_s for setup in setups}) > 1:
        yield "configurations have different durations"
    for role in ("log", "temp"):
        layouts = [with_own_directories(lab, setup).system.layout for setup in setups]
        named = [place for layout in layouts if (place := getattr(layout, role)) is not None]
        if len(set(named)) < len(named):
            yield f"two systems would use the same {role} directory, {named[0]}"
    yield from _against_metrics(lab, setups)
    yield from _against_servers(setups)
    data = {setup.system.layout.data for setup in setups}
    emulated = {directory for setup in setups for directory in setup.system.layout.emulated}
    for place in sorted(filter(None, data - emulated)):
        if len(data) < len(setups) and Path(place).is_mount():
            yield f"{place} is a mount point, but systems that run at the same time need separate directories"
    for setup in setups:
        layout = with_own_directories(lab, setup).system.layout
        if layout.data is not None and layout.data != setup.system.layout.data and layout.data not in layout.emulated:
            try:
                own_place.check(layout.data, "data")
            except InputError as error:
                yield f"{error.subject}: {error.cause}"
    yield from _short_of([with_own_directories(lab, setup) for setup in setups], contents)


def _against_servers(setups: Sequence[Setup]) -> Iterator[str]:
    """Yields reasons why systems on existing servers cannot be interleaved. ironbench never pauses an existing
    server."""
    theirs = [setup for setup in setups if setup.system.dsn is not None]
    if not theirs:
        return
    if len(theirs) < len(setups) or len({server_of(setup) for setup in theirs}) > 1:
        yield (
            "ironbench does not pause a server that it did not start, so this server would use CPU time during "
            "the slices of the other systems"
        )
    by_place: dict[str, list[Setup]] = {}
    for setup in theirs:
        by_place.setdefault(data_location(setup), []).append(setup)
    if len(set(map(_database_of, theirs))) < len(by_place):
        yield (
            "two configurations use one database with different users or TLS settings, so a failed data check cannot "
            "be traced to one of the two configurations"
        )
    for of in by_place.values():
        if len({data_key(setup) for setup in of}) > 1:
            yield "two configurations need different data in one database"
        if len({(setup.choice.workload, repr(sorted(setup.choice.options.items()))) for setup in of}) > 1:
            yield (
                "two configurations run different work in one database, so a failed data check could not be traced to "
                "one of the two configurations"
            )
        if len(of) > 1 and any(setup.cell.load.cache == "hot" for setup in of):
            yield (
                'for `cache = "hot"`, ironbench runs the work of each configuration in the shared database before the '
                "trial, which disturbs the data checks of the other configurations"
            )


def server_of(setup: Setup) -> str:
    """Returns the address of an existing server. Returns an empty text if ironbench starts the server."""
    system = setup.system
    return engines.get(system.engine).server_of(system.dsn) if system.dsn is not None else ""


def _database_of(setup: Setup) -> str:
    """Returns the database of an existing server."""
    return engines.get(setup.system.engine).database_of(str(setup.system.dsn))


def pauses_systems(lab: Lab) -> bool:
    """Returns whether systems are paused between turns. Systems on the same existing server are not."""
    return all(setup.system.dsn is None for setup in lab.measurable)


def _short_of(setups: Sequence[Setup], contents: Mapping[str, Content]) -> Iterator[str]:
    """Yields reasons that concern memory or disk space: there is not enough for all systems at the same time. `setups`:
    the configurations, each with its own directories."""
    if any(setup.system.dsn is not None for setup in setups):
        return  # the memory and space of an existing server are already in use
    there = memory_there()
    needed = sum(map(_memory_bytes, setups))
    if needed > there:
        yield (
            f"{counted(len(setups), 'system')} running at the same time need about {units.memory(needed)} of "
            f"memory, but the machine has {units.memory(there)}"
        )
    try:
        emulated = [device for setup in setups for device in setup.system.layout.devices]
        arrange.require_memory(f"{counted(len(setups), 'system')} running at the same time", emulated, 0)
    except InputError as error:
        yield f"{error.subject}: {error.cause}"
    yield from _short_of_space([setup for setup in setups if not setup.system.layout.devices], contents)


def _short_of_space(setups: Sequence[Setup], contents: Mapping[str, Content]) -> Iterator[str]:
    """Yields file systems that are too small for the data and WAL of all systems on them."""
    on_each: dict[int, list[Setup]] = {}
    for setup in setups:
        if setup.system.layout.data is not None:
            on_each.setdefault(space.file_system(setup.system.layout.data), []).append(setup)
    for of in on_each.values():
        place = str(of[0].system.layout.data)
        costs = [engines.get(setup.system.engine).traits.costs for setup in of]
        sizes = [contents[setup.cell.name].bytes for setup in of]
        wanted = sum(cost.empty_bytes + size + cost.log_of(size) for cost, size in zip(costs, sizes, strict=True))
        free = space.free_bytes(place)
        if wanted > free:
            some = counted(len(of), "system") if len(of) == len(setups) else f"{len(of)} of {len(setups)} systems"
            yield (
                f"running at the same time, {some} would need about {units.stored(wanted)} of space in {place}, "
                f"but {units.stored(free)} are free"
            )


def memory_there() -> int:
    machine = fingerprint()
    return min(machine.memory_bytes, machine.limits.memory_bytes or machine.memory_bytes)


def _memory_bytes(setup: Setup) -> int:
    """Returns the memory that a system needs. This is its memory limit, or without a limit the memory for its cache,
    processes and zero-latency parts."""
    if setup.system.memory_total_bytes is not None:
        return setup.system.memory_total_bytes
    ideal_bytes = sum(engines.get(setup.system.engine).ideal_bytes(setup.system).values())
    return (setup.system.memory_bytes or 0) + ideal_bytes + OWN_BYTES


def evicting(lab: Lab, contents: Mapping[str, Content]) -> str:
    """Warns if the data of all systems together exceed the page cache. Returns an empty text otherwise."""
    own = lab.measurable
    if lab.method.slice_s is None or any(setup.system.dsn is not None for setup in own):
        return ""
    sharing = [setup for setup in own if setup.system.memory_total_bytes is None]
    data_bytes = sum(contents[setup.cell.name].bytes for setup in sharing)
    left = max(0, memory_there() - sum(map(_memory_bytes, own)))
    if len(sharing) < 2 or data_bytes <= left:
        return ""
    return (
        f"the data of {counted(len(sharing), 'system')} running at the same time ({units.stored(data_bytes)}) do "
        f"not fit into the page cache (about {units.memory(left)}), so each system evicts pages of the other "
        "systems; set limits.memory_total to give each system a separate page cache, or use the method `trials`, "
        "in which each system has the whole page cache"
    )
