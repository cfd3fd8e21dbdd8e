"""Estimates the time and space of a lab from rates that were measured on a small virtual machine. The estimates are
accurate to an order of magnitude."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ironbench import engines, units, workloads
from ironbench.engines.base import EngineCosts
from ironbench.model.system import Setup
from ironbench.plan import blocks
from ironbench.plan.budget import LabTimes
from ironbench.trial.load.space import CHILD_BYTES
from ironbench.words import counted, grouped

COPY_BYTES_PER_S = 0.13e9
"""Rate of copying data in bytes per second, including the sync, on a file system that cannot share blocks. Measured on
the virtual disk of a small machine."""
EXPENSIVE = 0.10
"""If copying the data takes more than this fraction of a trial's length, the data are not copied before every trial."""
LOAD_BYTES_PER_S = 40e6
"""Load rate in bytes per second of each worker, relative to the final size of the data. The rate includes rows, keys
and statistics."""
READ_BYTES_PER_S = 0.5e9
"""Rate of reading data to warm caches, in bytes per second."""
REHEARSING_S = 2.0
"""Seconds until the hit ratio is steady, which usually takes two rehearsals of a short trial."""
MOUNT_S = 4.0
"""Seconds for starting an emulated device, creating its file system, calibrating it, and removing it."""
PIN_S = 0.5
"""Seconds for pinning a server to CPUs over ssh and for undoing this. Both steps start a process for each of the
server's threads."""
MADE_ROWS_PER_S = 0.8e6
"""Rows of large data that one core generates per second, without the server's time. The value is assumed; `bench
pieces` measures it."""
RECORD_BYTES = 300_000
"""Size of a trial on disk: record, time line, histograms, time series of observers."""


@dataclass(frozen=True, slots=True)
class Content:
    """The data with which the trials of a configuration start."""

    key: str
    """Key that is equal for configurations with the same data. Empty if no data are loaded."""
    bytes: int
    work_s: float | None = None
    """Approximate length in seconds of the measured window, for trials that have no duration and end when their work is
    done."""
    once: bool = False
    """Whether one copy may be sufficient for a whole lab. This requires that trials do not write and `restore` is
    `auto`."""


@dataclass(frozen=True, slots=True)
class SharedLoad:
    """Large data that workers load in pieces."""

    key: str
    workers: int
    pieces: int
    rows: int
    made_s: float
    """Seconds for generating the rows with one core of each worker."""
    memory_bytes: int
    """Memory of each worker in bytes."""

    @property
    def words(self) -> str:
        return (
            f"{counted(self.rows, 'row')} are loaded in {counted(self.pieces, 'piece')} by "
            f"{counted(self.workers, 'worker')}: generating them takes {units.span(self.made_s)} "
            f"with one core and {units.memory(self.memory_bytes)} of memory per worker, "
            f"assuming {grouped(MADE_ROWS_PER_S)} rows/s per core; the server may need longer"
        )


def shared_loads(setups: Sequence[Setup]) -> list[SharedLoad]:
    """Returns the large data that workers of a lab will load, without duplicates."""
    from ironbench import _core

    workers = max((setup.cell.load.workers for setup in setups), default=0)
    found: dict[str, SharedLoad] = {}
    for setup in setups if workers else ():
        imported = setup.choice.data is not None and setup.choice.data.imported
        dataset = workloads.get(setup.choice.workload).dataset(setup.system.engine, setup.choice.options)
        if dataset is None or not dataset.large or imported or dataset.key in found:
            continue
        # The number of connections does not matter here, because pieces of large data have a fixed size.
        pieces = _core.cut_rows(json.dumps(dataset.generator).encode(), workers, b"[]")
        made_s = dataset.rows / MADE_ROWS_PER_S / workers
        found[dataset.key] = SharedLoad(dataset.key, workers, len(pieces), dataset.rows, made_s, CHILD_BYTES)
    return list(found.values())


def cells(
    setups: Sequence[Setup],
    contents: Mapping[str, Content],
    own_times: bool,
    rated: Sequence[Setup] = (),
    rated_blocks: int = 0,
) -> LabTimes:
    """Returns the times of a lab's configurations. `contents` maps the name of a configuration to its data.
    `own_times`: whether the measured time of every configuration is fixed and does not depend on the budget."""
    loads = {
        contents[setup.cell.name].key: contents[setup.cell.name].bytes / LOAD_BYTES_PER_S / _loaders(setup)
        for setup in setups
        if contents[setup.cell.name].key
    }
    once = _copied_once([*setups, *rated], contents) if own_times else {}
    copies = {setup.system.layout.data: once[setup.cell.name] for setup in setups if setup.cell.name in once}
    peak_trials = blocks.peaks([*setups, *rated])
    search_trials = blocks.searching(setups) // max(1, len(setups))  # the same number for each configuration
    return LabTimes(
        own_s=tuple(_own_s(setup, contents[setup.cell.name], own_times) for setup in setups),
        around_s=tuple(
            _around_s(setup, contents[setup.cell.name].bytes) - once.get(setup.cell.name, 0.0) for setup in setups
        ),
        once_s=sum(load_s + _costs(setups[0]).start_stop_s for load_s in loads.values()),
        # Before the first block, data are copied for every trial (`ironbench.lab.benches`).
        copies_s=sum(copies.values())
        + peak_trials * once.get(setups[0].cell.name, 0.0)
        + search_trials * sum(once.get(setup.cell.name, 0.0) for setup in setups),
        peak_trials=peak_trials,
        declared_peaks=blocks.peaks(setups),
        search_trials=search_trials,
        pilots_s=sum(_around_s(one, contents[one.cell.name].bytes, pilot=True) for one in blocks.piloted(setups)),
        rated_around_s=tuple(
            _around_s(setup, contents[setup.of].bytes) - once.get(setup.cell.name, 0.0) for setup in rated
        ),
        rated_blocks=rated_blocks if rated else 0,
    )


def _loaders(setup: Setup) -> int:
    """Returns the number of processes that load a configuration's data in parallel. Large data are loaded by all
    workers, other data by one process."""
    workers = setup.cell.load.workers
    if not workers or (setup.choice.data is not None and setup.choice.data.imported):
        return 1
    dataset = workloads.get(setup.choice.workload).dataset(setup.system.engine, setup.choice.options)
    return workers if dataset is not None and dataset.large else 1


def _copied_once(setups: Sequence[Setup], contents: Mapping[str, Content]) -> dict[str, float]:
    """Returns the configurations whose data are copied only once, because each trial starts from the data that the
    previous trial left behind. Maps the name of the configuration to the seconds that a copy takes.

    This is possible only if all configurations in the same directory have equal data. `trial.load.restore` makes the
    same decision when the trials run.
    """
    seconds: dict[str, float] = {}
    for place in {setup.system.layout.data for setup in setups}:
        there = [setup for setup in setups if setup.system.layout.data == place]
        first = there[0]
        same = all(
            contents[one.origin].key == contents[first.origin].key and one.system.layout == first.system.layout
            for one in there
        )
        if same and all(_takes_too_long(one, contents[one.origin]) for one in there):
            copy_s = contents[first.origin].bytes / COPY_BYTES_PER_S
            seconds |= {one.cell.name: copy_s for one in there}
    return seconds


def _takes_too_long(setup: Setup, content: Content) -> bool:
    """Returns whether copying the data before every trial would take too long."""
    load, lasts = setup.cell.load, not setup.system.layout.devices  # emulated devices exist only during a trial
    length_s = content.work_s if load.duration_s is None else load.duration_s
    if not (content.once and content.key and lasts) or length_s is None:
        return False
    return content.bytes / COPY_BYTES_PER_S > EXPENSIVE * (length_s + load.warmup_s)


def _own_s(setup: Setup, content: Content, own_times: bool) -> float | None:
    if setup.cell.load.duration_s is None:
        return content.work_s or 0.0
    return setup.cell.load.duration_s if own_times else None


def space_bytes(setups: Sequence[Setup], contents: Mapping[str, Content], trials: int) -> int:
    """Returns the disk space that a lab needs. This is the space for one snapshot of each content, for data and WAL in
    each data directory, and for the records. Data on existing servers are not included."""
    setups = [setup for setup in setups if setup.system.dsn is None]
    loaded = (contents[setup.cell.name] for setup in setups)
    snapshots = {content.key: content.bytes for content in loaded if content.key}
    used: dict[str, int] = {}
    for setup in setups:
        place, size = setup.system.layout.data or "", contents[setup.cell.name].bytes
        costs = _costs(setup)
        log = costs.log_of(size)
        used[place] = max(used.get(place, 0), costs.empty_bytes + size + log)
    empty = max((_costs(setup).empty_bytes for setup in setups), default=0)
    return sum(size + empty for size in snapshots.values()) + sum(used.values()) + trials * RECORD_BYTES


def _around_s(setup: Setup, data_bytes: int, pilot: bool = False) -> float:
    """Returns the time in seconds that a trial takes in addition to its measured window. For a pilot, the window is
    included.

    On an existing server, only the user's own data are copied. The server is restarted only if the user permits this.
    """
    warming = data_bytes / READ_BYTES_PER_S if setup.cell.load.cache in ("warm", "hot") else 0.0
    warming += REHEARSING_S if setup.cell.load.cache == "hot" else 0.0
    engine = _costs(setup).start_stop_s + (MOUNT_S if setup.system.layout.devices else 0.0)
    driven = blocks.PILOT_S if pilot else setup.cell.load.warmup_s
    own = setup.choice.data is not None and setup.choice.data.imported
    copying = data_bytes / COPY_BYTES_PER_S if own or not setup.system.dsn else 0.0
    driven += workloads.get(setup.choice.workload).resting_s(setup.choice.options)
    return driven + warming + (_changing(setup) if setup.system.dsn else engine) + copying


def _changing(setup: Setup) -> float:
    """Returns the time for changes to a running server of the user: a restart, and pinning to CPUs."""
    if not setup.system.control:
        return 0.0
    restart = _costs(setup).start_stop_s if setup.cell.load.cache == "cold" else 0.0
    return restart + (PIN_S if setup.system.server_cpus else 0.0)


def _costs(setup: Setup) -> EngineCosts:
    return engines.get(setup.system.engine).traits.costs
