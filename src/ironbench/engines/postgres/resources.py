"""Settings and places that follow from memory, cores and devices: presets for large queries, and ideal parts.

Every value of a preset is one that a careful administrator would choose for large queries on few clients, none depends
on a single query; the sources are PostgreSQL's manual (19.4, 19.5, 19.7) and its wiki ("Tuning Your PostgreSQL
Server"). docs/concepts/tpch.md has the table. Whatever the user sets wins, and all of it is in the record.

Ideal parts. `log`: pg_wal in memory; every write and sync of it is still done. `temp`: the tablespace of temporary
files in memory. `data`: shared buffers larger than all tables and indexes, filled before the trial: nothing is read,
nothing is evicted; checkpoints still write what changed. A limit on all memory grows by what the part takes, and goes
with `data`.
"""

from __future__ import annotations

import os
from pathlib import Path

from ironbench.engines import ideal
from ironbench.engines.postgres.cluster import Cluster
from ironbench.host import place, space
from ironbench.model.system import System
from ironbench.units import size_of_1024

CACHE_SHARE = 1 / 4
"""Of the memory, for shared_buffers: "a reasonable starting value … is 25 %" (manual, 19.4.1)."""
KNOWN_SHARE = 3 / 4
"""Of the memory, that the planner believes to hold pages: shared buffers and page cache together."""
WORK_SHARE = 1 / 4
"""Of the memory, for all sorts and hashes at the same time."""
AT_ONCE = 8
"""Allowances of work_mem that one process of a query may take at the same time: four, of which hashes count twice."""
LEAST_WORK_BYTES, MOST_WORK_BYTES = 4 << 20, 1 << 30
MOST_MAINTENANCE_BYTES = 1 << 30
FLASH_DEPTH, DISK_DEPTH = 64, 8
"""Reads that a device is given at the same time (effective_io_concurrency)."""


def preset(system: System, streams: int = 1) -> dict[str, str]:
    """Settings by name; only those that neither `--memory` nor a declared parallelism decides already."""
    memory_bytes = _memory_bytes(system)
    cores = len(system.server_cpus or os.sched_getaffinity(0))
    workers = cores if system.parallelism is None else system.parallelism
    emulated = system.layout.device_of("data")
    flash = not (emulated.rotates if emulated else rotates(system.layout.data or str(place.base())))
    work_bytes = memory_bytes * WORK_SHARE / (max(1, streams) * workers * AT_ONCE)
    maintenance_bytes = min(MOST_MAINTENANCE_BYTES, memory_bytes // 16)
    preset = {
        "effective_cache_size": _kilobytes(memory_bytes * KNOWN_SHARE),
        "work_mem": _kilobytes(max(LEAST_WORK_BYTES, min(MOST_WORK_BYTES, work_bytes))),
        "maintenance_work_mem": _kilobytes(max(LEAST_WORK_BYTES, maintenance_bytes)),
        "random_page_cost": "1.1" if flash else "4",
        "effective_io_concurrency": str(FLASH_DEPTH if flash else DISK_DEPTH),
        "io_workers": str(min(32, max(3, 2 * cores))),
        "max_wal_size": "8GB",
        "checkpoint_timeout": "30min",
    }
    if emulated is not None:
        # The engine derives these two from the device's model.
        del preset["effective_io_concurrency"], preset["io_workers"]
    if system.memory_bytes is None and "shared_buffers" not in system.settings:
        preset["shared_buffers"] = _kilobytes(max(128 << 20, memory_bytes * CACHE_SHARE))
    if system.parallelism is None:
        preset |= {
            "max_parallel_workers_per_gather": str(max(1, cores - 1)),
            "max_parallel_workers": str(max(8, cores)),
            "max_worker_processes": str(max(8, cores) + 8),
        }
    return preset


def rotates(directory: str) -> bool:
    """Whether the kernel calls the device of a directory a rotating one (sysfs, queue/rotational); no where unknown."""
    device = space.existing(directory).stat().st_dev
    block = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    for folder in (block, block / ".."):  # a partition has no queue of its own
        try:
            return (folder / "queue/rotational").read_text().strip() == "1"
        except OSError:
            continue
    return False


def _memory_bytes(system: System) -> int:
    """What the engine and the page cache of its files may have together."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(machine, system.memory_total_bytes or machine)


def _kilobytes(size: float) -> str:
    return f"{int(size) // 1024}kB"


LOG_SLACK = 1.25
"""PostgreSQL's log may grow beyond `max_wal_size`, a soft limit, 1GB by default (PostgreSQL 18 documentation,
19.5.2)."""
LEAST_CACHE_BYTES = 128 << 20
"""The server's own default."""
CACHE = "shared_buffers"


def with_cache(system: System, cluster: Cluster) -> System:
    return ideal.with_cache(system, cluster.files / "base", LEAST_CACHE_BYTES)


def memory_bytes(system: System) -> dict[str, int]:
    """Ideal part → what it may need in memory."""
    needed = {"log": _log_bytes(system), "temp": ideal.TEMP_BYTES}
    return {part: count for part, count in needed.items() if part in system.ideal}


def _log_bytes(system: System) -> int:
    text = system.settings.get("max_wal_size", "1GB")
    # A bare number counts MB (pg_settings.unit), and MB is 2²⁰ (manual, 19.1.1 "Parameter Names and Values").
    return int(size_of_1024("max_wal_size", text, bare=1 << 20) * LOG_SLACK)
