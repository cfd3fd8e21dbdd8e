"""Fills PostgreSQL's own cache by reads in the order of each index.

A second sequential scan of a large table hits next to nothing: tables larger than a quarter of shared_buffers are
scanned through a ring of 256 kB (PostgreSQL: src/backend/storage/buffer/README, "Buffer Ring Replacement Strategy").
Index scans have no such ring.
"""

from __future__ import annotations

from ironbench.model.session import Session

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


def by_index(session: Session, tables: tuple[str, ...]) -> int:
    """How many indexes of the tables (none: of all) were read. FailureError."""
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
