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
"""Recommended size of a cache as a multiple of the data, so that there is room for growth."""
_HUGE_FROM = 2 << 30
_SPILLED_PER_H = 1e9
_HOUR_S = 3600.0

_CACHE = r"""
    select pg_size_bytes(current_setting('shared_buffers')), sum(pg_database_size(oid))
      from pg_database where has_database_privilege(oid, 'connect') and datname not like 'ironbench\_%'
"""
"""Query for shared_buffers and the total size of the databases. Copies that ironbench made are excluded, because they
are temporary."""


def _megabytes(count: float) -> str:
    return f"{int(count) >> 20}MB"


@probe("memory", "shared buffers", _CACHE)
def shared_buffers(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Size of the shared buffers, compared with the data and the machine's memory."""
    cache, data = (float(value or 0) for value in rows[0])
    seen = f"shared_buffers is {memory(cache)}, the size of the databases {stored(data)}"
    if data <= cache:
        return ok(f"{seen}: all data fit")
    small = "Backends read the same pages from the page cache repeatedly, and spend time on evicting buffers."
    if server.memory_bytes is None:
        if cache > _DEFAULT_CACHE:
            return ok(seen)
        return note(f"{seen} (the default)", small, "start with about a quarter of the server's memory")
    share, seen = cache / server.memory_bytes, f"{seen}, the machine's memory {memory(server.memory_bytes)}"
    enough = max(data * _DATA_ROOM, _DEFAULT_CACHE)
    better = changed("shared_buffers", _megabytes(min(server.memory_bytes * CACHE_SHARE, enough)), restart=True)
    if share < _LEAST_SHARE:
        return warning(seen, small, better)
    if share > _MOST_SHARE:
        return warning(
            seen,
            "Little memory is left for sorts, connections and the page cache, so the server may swap or be killed.",
            better,
        )
    return ok(seen)


_KNOWN = """
    select pg_size_bytes(current_setting('effective_cache_size')), pg_size_bytes(current_setting('shared_buffers'))
"""


@probe("memory", "effective cache size", _KNOWN)
def effective_cache_size(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """How much cache the planner assumes, which decides between index and sequential scans."""
    known, cache = (float(value or 0) for value in rows[0])
    seen = f"effective_cache_size is {memory(known)}"
    if server.memory_bytes is None:
        if known >= cache:
            return ok(seen)
        return warning(
            f"{seen}, shared_buffers is {memory(cache)}",
            "The planner assumes a cache smaller than shared_buffers, and avoids index scans that would be fast.",
            "set it to about three quarters of the server's memory",
        )
    share = known / server.memory_bytes
    better = changed("effective_cache_size", _megabytes(server.memory_bytes * KNOWN_SHARE))
    seen = f"{seen}, the machine has {memory(server.memory_bytes)}"
    if share > 1:
        return note(
            seen, "The planner assumes more cache than available, so it underestimates the cost of index scans.", better
        )
    if share < _MOST_SHARE:
        return note(seen, "The planner assumes less cache than available, and avoids index scans.", better)
    return ok(seen)


_SPILLS = f"""
    select temp_files, temp_bytes, {since()}, current_setting('work_mem')
      from pg_stat_database where datname = current_database()
"""


@probe("memory", "temporary files", _SPILLS)
def spills(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Sorts and hashes that exceeded work_mem and used temporary files."""
    files, size = (float(value or 0) for value in rows[0][:2])
    over_s = float(rows[0][2]) if rows[0][2] else None
    if not files:
        return ok(f"none with work_mem = {rows[0][3]}")
    when = f"in {span(over_s)}" if over_s else "since the last statistics reset"
    seen = f"{counted(files, 'temporary file')} of {stored(size / files)} on average {when}, work_mem is {rows[0][3]}"
    meaning = (
        "Sorts and hashes write temporary files although they could fit into memory, and these files compete "
        "with other I/O."
    )
    remedy = (
        "find the statements (pg_stat_statements: temp_blks_written; or log_temp_files = 0), and raise work_mem "
        "for the role that runs the statements; each sort or hash of each connection may use that much memory"
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
        return ok(f"shared_buffers is {memory(cache)}: huge pages would help little")
    if status == "on" or setting == "on":
        return ok("used")
    if status is None and setting == "try" and not _none_reserved(server):
        return note("huge_pages = try; before version 17, the server does not show whether huge pages are used", "", "")
    return note(
        "not used",
        f"Each connection builds its own page tables for {memory(cache)}, which costs CPU time and memory per "
        f"connection (up to {in_percent(1 / 512)} of the cache each).",
        "sysctl vm.nr_hugepages=N with N from postgres -C shared_memory_size_in_huge_pages; then restart the server",
    )


def _none_reserved(server: ExaminedServer) -> bool:
    """Returns whether the server's machine has no huge pages. Returns False if the server runs on another machine."""
    if server.memory_bytes is None:
        return False
    text = Tree().read("/proc/meminfo") or ""
    return any(line.split() == ["HugePages_Total:", "0"] for line in text.splitlines())
