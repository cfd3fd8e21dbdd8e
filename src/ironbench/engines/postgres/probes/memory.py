"""Probes of memory: shared buffers, the planner's assumption about caches, temporary files, huge pages."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.engines.examination import ExaminedServer, Readings
from ironbench.engines.postgres.probes import changed, probe, since
from ironbench.engines.postgres.resources import CACHE_SHARE, KNOWN_SHARE
from ironbench.host.tree import Tree
from ironbench.model.diagnosis import note, ok, warning
from ironbench.model.session import Row
from ironbench.units import memory, span, stored
from ironbench.words import counted, in_percent

_DEFAULT_CACHE = 128 << 20
_LEAST_SHARE, _MOST_SHARE = 0.1, 0.5
_DATA_ROOM = 1.25
"""Size of a cache relative to the data, so that there is room for growth."""
_HUGE_FROM = 2 << 30
_SPILLED_PER_H = 1e9
_HOUR_S = 3600.0

_CACHE = r"""
    select pg_size_bytes(current_setting('shared_buffers')), sum(pg_database_size(oid))
      from pg_database where has_database_privilege(oid, 'connect') and datname not like 'ironbench\_%'
"""
"""Excludes copies that ironbench made, which are temporary."""


def _megabytes(count: float) -> str:
    return f"{int(count) >> 20}MB"


@probe("memory", "shared buffers", _CACHE)
def shared_buffers(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Size of the shared buffers, compared with the data and the machine's memory."""
    cache, data = (float(value or 0) for value in rows[0])
    seen = f"shared_buffers is {memory(cache)}, databases have {stored(data)}"
    if data <= cache:
        return ok(f"{seen}: all of it fits")
    small = "Pages are fetched from the kernel again and again, and evicted by backends that should do other work."
    if server.memory_bytes is None:
        if cache > _DEFAULT_CACHE:
            return ok(seen)
        return note(f"{seen}; that is the default", small, "about a quarter of the server's memory is a good beginning")
    share, seen = cache / server.memory_bytes, f"{seen}, the machine {memory(server.memory_bytes)}"
    enough = max(data * _DATA_ROOM, _DEFAULT_CACHE)
    better = changed("shared_buffers", _megabytes(min(server.memory_bytes * CACHE_SHARE, enough)), restart=True)
    if share < _LEAST_SHARE:
        return warning(seen, small, better)
    if share > _MOST_SHARE:
        return warning(
            seen,
            "Little is left for sorts, connections and the kernel's cache: the server may swap or be killed.",
            better,
        )
    return ok(seen)


_KNOWN = """
    select pg_size_bytes(current_setting('effective_cache_size')), pg_size_bytes(current_setting('shared_buffers'))
"""


@probe("memory", "cache that is known", _KNOWN)
def effective_cache_size(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """How much cache the planner assumes, which decides between index and sequential scans."""
    known, cache = (float(value or 0) for value in rows[0])
    seen = f"effective_cache_size is {memory(known)}"
    if server.memory_bytes is None:
        if known >= cache:
            return ok(seen)
        return warning(
            f"{seen}, shared_buffers is {memory(cache)}",
            "The planner believes in less cache than the server has: it avoids index scans that would be fast.",
            "about three quarters of the server's memory",
        )
    share = known / server.memory_bytes
    better = changed("effective_cache_size", _megabytes(server.memory_bytes * KNOWN_SHARE))
    seen = f"{seen}, the machine has {memory(server.memory_bytes)}"
    if share > 1:
        return note(
            seen, "The planner believes in more cache than there is: index scans seem cheaper than they are.", better
        )
    if share < _MOST_SHARE:
        return note(seen, "The planner believes in less cache than there is, and avoids index scans.", better)
    return ok(seen)


_SPILLS = f"""
    select temp_files, temp_bytes, {since()}, current_setting('work_mem')
      from pg_stat_database where datname = current_database()
"""


@probe("memory", "spills", _SPILLS)
def spills(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Sorts and hashes that exceeded work_mem and used temporary files."""
    files, size = (float(value or 0) for value in rows[0][:2])
    over_s = float(rows[0][2]) if rows[0][2] else None
    if not files:
        return ok(f"none with work_mem = {rows[0][3]}")
    when = f"in {span(over_s)}" if over_s else "since statistics began"
    seen = f"{counted(files, 'temporary file')} of {stored(size / files)} on average {when}, work_mem is {rows[0][3]}"
    meaning = "Sorts and hashes write to disk what memory could hold; they compete with everybody's I/O."
    remedy = (
        "find the statements (pg_stat_statements: temp_blks_written; or log_temp_files = 0) and set work_mem for their "
        "role; each sort or hash of each connection may take as much"
    )
    often = over_s is not None and size * _HOUR_S / max(over_s, _HOUR_S) > _SPILLED_PER_H
    return warning(seen, meaning, remedy) if often else note(seen, meaning, remedy)


_HUGE = """
    select pg_size_bytes(current_setting('shared_buffers')), current_setting('huge_pages'),
           current_setting('huge_pages_status', true)
"""


@probe("memory", "huge pages", _HUGE)
def huge_pages(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Whether large shared buffers are mapped with huge pages."""
    cache, setting, status = float(rows[0][0] or 0), str(rows[0][1]), rows[0][2]
    if cache < _HUGE_FROM:
        return ok(f"shared_buffers is {memory(cache)}: they would gain little")
    if status == "on" or setting == "on":
        return ok("used")
    if status is None and setting == "try" and not _none_reserved(server):
        return note("huge_pages = try; whether they are used is not shown before version 17", "", "")
    return note(
        "not used",
        f"The page tables of {memory(cache)} are built anew in each connection: memory and CPU time that grow with "
        f"the number of connections ({in_percent(1 / 512)} of the cache for each).",
        "postgres -C shared_memory_size_in_huge_pages says how many; sysctl vm.nr_hugepages=N, then restart the server",
    )


def _none_reserved(server: ExaminedServer) -> bool:
    """Whether this machine, which is the server's, has no huge pages at all."""
    if server.memory_bytes is None:
        return False
    text = Tree().read("/proc/meminfo") or ""
    return any(line.split() == ["HugePages_Total:", "0"] for line in text.splitlines())
