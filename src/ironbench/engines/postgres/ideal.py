"""What an ideal part means for PostgreSQL.

`log`: pg_wal in memory; every write and sync of it is still done. `temp`: the tablespace of temporary files in memory.
`data`: shared buffers larger than all tables and indexes, filled before the trial: nothing is read, nothing is
evicted; checkpoints still write what changed. A limit on all memory grows by what the part takes, and goes with `data`.
"""

from __future__ import annotations

from dataclasses import replace

from ironbench.engines import ideal
from ironbench.engines.postgres.cluster import Cluster
from ironbench.machine import copies
from ironbench.model.system import System
from ironbench.units import size_of_1024

TEMP_BYTES = 1 << 30
"""Memory that must be there for temporary files; statements that need more fail as on a full device."""
LOG_SLACK = 1.25
"""PostgreSQL's log may grow beyond `max_wal_size`, a soft limit, 1GB by default (PostgreSQL 18 documentation,
19.5.2)."""
LEAST_CACHE_BYTES = 128 << 20
"""The server's own default."""
GROWTH = 1.25
ROOM_BYTES = 256 << 20
"""Cache beyond the data's present size, as a factor and on top: tables grow, and catalogs need buffers too."""


def arranged(system: System, data: str) -> System:
    """The system with its ideal parts in memory. InputError when there is too little of it. Makes nothing."""
    for part, needed in memory_bytes(system).items():
        where = ideal.directory(data, part)
        ideal.require(part, needed, ideal.MEMORY)
        limit = system.memory_total_bytes
        system = replace(
            system,
            layout=system.layout.at({part: where}),
            memory_total_bytes=None if limit is None else limit + needed,
        )
    if "data" in system.ideal:
        kept = {name: value for name, value in system.settings.items() if name != "shared_buffers"}
        system = replace(system, settings=kept, memory_total_bytes=None)
    return system


def with_cache(system: System, cluster: Cluster) -> System:
    """With shared buffers for all data that are there now. InputError when the memory is not."""
    if "data" not in system.ideal:
        return system
    wanted = int(copies.size(cluster.files / "base") * GROWTH) + ROOM_BYTES
    wanted = max(wanted, system.memory_bytes or LEAST_CACHE_BYTES)
    ideal.require("data", wanted)
    return replace(system, memory_bytes=wanted)


def in_memory(system: System) -> tuple[str, ...]:
    """Directories that go with the server."""
    if system.layout.data is None or not {"log", "temp"} & set(system.ideal):
        return ()
    return (str(ideal.root(system.layout.data)),)


def memory_bytes(system: System) -> dict[str, int]:
    """Ideal part → what it may need in memory."""
    needed = {"log": _log_bytes(system), "temp": TEMP_BYTES}
    return {part: count for part, count in needed.items() if part in system.ideal}


def _log_bytes(system: System) -> int:
    told = system.settings.get("max_wal_size", "1GB")
    # A bare number counts MB (pg_settings.unit), and MB is 2²⁰ (manual, 19.1.1 "Parameter Names and Values").
    return int(size_of_1024("max_wal_size", told, bare=1 << 20) * LOG_SLACK)
