"""What an ideal part means for the load that is put on a system, and the memory it needs; the rest is the engine's
(`engines.ideal`)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ironbench.model.system import Load, System
from ironbench.plan import values

TEMP_BYTES = 1 << 30
"""Memory that must be there for temporary files; statements that need more fail as on a full device."""
LOG_SLACK = 1.25
"""PostgreSQL's log may grow beyond `max_wal_size`, a soft limit, 1GB by default (PostgreSQL 18 documentation,
19.5.2)."""


def arranged(system: System, load: Load, cpus: Collection[int]) -> tuple[System, Load]:
    """System and load of a cell with its ideal parts.

    `client`: a thread for every core (as many as there are clients at most), on any core, and no think time: what the
    client then costs it cannot help costing. `data`: the caches are full when the trial begins.
    """
    if "client" in system.ideal:
        system = replace(system, client_cpus=None)
        load = replace(load, threads=max(load.threads, min(load.clients, len(cpus))), think_time_s=0.0)
    if "data" in system.ideal:
        load = replace(load, cache="hot")
    return system, load


def memory_bytes(system: System) -> dict[str, int]:
    """Ideal part → what PostgreSQL may need for it in memory; a limit on all memory grows by as much."""
    if system.engine != "postgres":
        return {}
    needed = {"log": _log_bytes(system), "temp": TEMP_BYTES}
    return {part: count for part, count in needed.items() if part in system.ideal}


def _log_bytes(system: System) -> int:
    told = system.settings.get("max_wal_size", "1GB")
    # A bare number is megabytes (pg_settings.unit).
    return int(values.size("max_wal_size", f"{told}MB" if told.isdigit() else told) * LOG_SLACK)
