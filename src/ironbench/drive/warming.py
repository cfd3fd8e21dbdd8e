"""Fills caches before a trial: the page cache file by file, PostgreSQL's own by reads in the order of each index.

A second sequential scan of a large table hits next to nothing in PostgreSQL: tables larger than a quarter of
shared_buffers are scanned through a ring of 256 kB (PostgreSQL: src/backend/storage/buffer/README, "Buffer Ring
Replacement Strategy"). Index scans have no such ring.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ironbench.machine import copies
from ironbench.model.session import Session
from ironbench.model.system import System
from ironbench.words import counted

_INDEXES = """
    select c.oid::regclass, i.indexrelid::regclass, i.indisprimary,
           (select string_agg(pg_get_indexdef(i.indexrelid, k, true), ', ' order by k)
              from generate_series(1, i.indnkeyatts) k),
           coalesce(pg_get_expr(i.indpred, i.indrelid), 'true')
      from pg_class c
      left join pg_index i on i.indrelid = c.oid and i.indisvalid
      left join pg_class x on x.oid = i.indexrelid
     where c.relkind = 'r' and {which}
       and (i.indexrelid is null or x.relam = (select oid from pg_am where amname = 'btree'))
     order by c.oid, i.indisprimary desc, i.indexrelid
"""
_IN_INDEX_ORDER = (
    "set local enable_seqscan = off; set local enable_bitmapscan = off; set local enable_sort = off; "
    "set local enable_incremental_sort = off; set local max_parallel_workers_per_gather = 0; "
)


def warm(session: Session, system: System, tables: tuple[str, ...]) -> str:
    """Fills the caches with the tables (none: all of the database), as far as they fit; how, in words. FailureError."""
    ways = []
    data = session.directories().get("data")
    # In a memory control group a page belongs to whom read it first: what we read would escape the engine's limit.
    if data is not None and system.memory_total_bytes is None and system.dsn is None:
        copies.touch(Path(data))
        ways.append("files read")
    if session.engine == "postgres":
        ways.append(f"{_by_index(session, tables)} indexes read in their order")
    if session.engine == "duckdb":
        for table in tables:
            # The largest or smallest value would be answered from statistics, without reading.
            session.query(f"select bit_xor(hash(columns(*))) from {table}")
        ways.append(f"every column of {counted(len(tables), 'table')} read")
    return " and ".join(ways) or "nothing could be read beforehand"


def hits(session: Session) -> Mapping[str, int]:
    """Blocks that the engine found in its cache, and those that it did not; empty where it counts neither."""
    if session.engine != "postgres":
        return {}
    session.query("select pg_stat_force_next_flush()")  # what this session itself has read so far
    sql = "select sum(blks_hit), sum(blks_read) from pg_stat_database where datname = current_database()"
    hit, read = session.query(sql)[0]
    return {"hit": int(hit or 0), "read": int(read or 0)}


def hit_share(before: Mapping[str, int], after: Mapping[str, int]) -> float | None:
    """Share of the blocks between two readings that were found; None without any."""
    if not before or not after:
        return None
    hit, read = after["hit"] - before["hit"], after["read"] - before["read"]
    return hit / (hit + read) if hit + read > 0 else None


def _by_index(session: Session, tables: tuple[str, ...]) -> int:
    names = ", ".join(f"'{name}'" for name in tables)
    which = f"c.relname in ({names}) and pg_table_is_visible(c.oid)" if tables else "c.oid >= 16384"
    done = 0
    seen: set[str | None] = set()
    for table, index, _, columns, predicate in session.query(_INDEXES.format(which=which)):
        if index is None or columns is None:
            session.query(f"select count(*) from {table}")
            continue
        # The first index of a table brings its rows, too; of the others the index alone is wanted.
        what = "*" if table not in seen else columns
        only = "off" if table not in seen else "on"
        seen.add(table)
        session.query(
            f"begin; {_IN_INDEX_ORDER} set local enable_indexonlyscan = {only}; "
            f"select count(t.*) from (select {what} from {table} where {predicate} order by {columns}) t; commit"
        )
        done += 1
    return done
