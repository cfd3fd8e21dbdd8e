"""Settings and directories that depend on memory, cores and devices, for the preset for large queries and for ideal
parts.

A preset has the values that a careful administrator would choose for large queries with few clients. No value is tuned
for a single query. Sources: PostgreSQL's manual (19.4, 19.5, 19.7) and wiki ("Tuning Your PostgreSQL Server").
docs/workloads/tpch-design.md lists the values. The user's settings take precedence, and the record contains all
settings.

For an ideal `log`, pg_wal is in memory, and all its writes and syncs are still executed. For `temp`, the tablespace for
temporary files is in memory. For `data`, the shared buffers are larger than all tables and indexes and are filled
before the trial. No page is then read or evicted, but checkpoints still write dirty pages. `engines.ideal` explains
what happens to a limit on total memory.
"""

from __future__ import annotations

import os
from pathlib import Path

from ironbench.engines import ideal
from ironbench.engines.postgres.cluster import Cluster
from ironbench.host import data_dirs, space
from ironbench.model.system import System
from ironbench.units import size_of_1024

CACHE_SHARE = 1 / 4
"""Fraction of memory for shared_buffers: "a reasonable starting value … is 25 %" (manual, 19.4.1)."""
KNOWN_SHARE = 3 / 4
"""Fraction of memory that the planner assumes to be cache. This covers shared buffers and page cache together."""
WORK_SHARE = 1 / 4
"""Fraction of memory for all concurrent sorts and hashes together."""
AT_ONCE = 8
"""Maximum memory of one process of a query at any time, as a multiple of work_mem. The process has up to four
operations at the same time, and hashes count twice."""
LEAST_WORK_BYTES, MOST_WORK_BYTES = 4 << 20, 1 << 30
MOST_MAINTENANCE_BYTES = 1 << 30
FLASH_DEPTH, DISK_DEPTH = 64, 8
"""Number of concurrent reads per device (effective_io_concurrency)."""


def preset(system: System, streams: int = 1) -> dict[str, str]:
    """Returns settings for large queries. Settings that follow from `--memory` or from a declared parallelism are
    missing."""
    memory_bytes = _memory_bytes(system)
    cores = len(system.server_cpus or os.sched_getaffinity(0))
    workers = cores if system.parallelism is None else system.parallelism
    emulated = system.layout.device_of("data")
    flash = not (emulated.rotates if emulated else rotates(system.layout.data or str(data_dirs.base())))
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
        # The engine derives these two settings from the device's model.
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
    """Returns whether the kernel classifies the directory's device as rotating (sysfs, queue/rotational). Returns False
    if this is unknown."""
    device = space.existing(directory).stat().st_dev
    block = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    for folder in (block, block / ".."):  # the queue directory of a partition is in the parent directory
        try:
            return (folder / "queue/rotational").read_text().strip() == "1"
        except OSError:
            continue
    return False


def _memory_bytes(system: System) -> int:
    """Returns the memory that is available to the engine, including the page cache of its files."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(machine, system.memory_total_bytes or machine)


def _kilobytes(size: float) -> str:
    return f"{int(size) // 1024}kB"


LOG_SLACK = 1.25
"""Maximum size of the WAL as a multiple of `max_wal_size`. This setting is a soft limit, which is 1 GB by default
(PostgreSQL 18 documentation, 19.5.2)."""
LEAST_CACHE_BYTES = 128 << 20
"""Minimum size of shared_buffers that ironbench sets. This size is the server's default."""
CACHE = "shared_buffers"


def with_cache(system: System, cluster: Cluster) -> System:
    return ideal.with_cache(system, cluster.files / "base", LEAST_CACHE_BYTES)


def memory_bytes(system: System) -> dict[str, int]:
    """Returns the maximum memory that each zero-latency part in memory needs."""
    needed = {"log": _log_bytes(system), "temp": ideal.TEMP_BYTES}
    return {part: needed[part] for part in ideal.in_memory(system)}


def _log_bytes(system: System) -> int:
    text = system.settings.get("max_wal_size", "1GB")
    # A value of max_wal_size without a unit is in MB (pg_settings.unit). PostgreSQL's MB has 2²⁰ bytes (manual, 19.1.1
    # "Parameter Names and Values").
    return int(size_of_1024("max_wal_size", text, bare=1 << 20) * LOG_SLACK)
