"""Use of tables and indexes (pg_stat_user_tables, pg_statio_user_tables and the views of indexes), and running vacuums
(pg_stat_progress_vacuum).

The statistics are read at the start and the end of the measured window. Backends report them up to a second late
(`catalog.py`). Sizes are read only if there are few tables, because each size requires system calls for the table's
files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ironbench.engines.postgres.observers.catalog import as_published, has_relation
from ironbench.engines.window_ends import WindowEnds, counters, fields
from ironbench.host.tree import Tree
from ironbench.model.inside import IndexUse, TableUse, VacuumRun
from ironbench.model.observation import Observation, Sample, Source
from ironbench.model.observer import Samples
from ironbench.model.session import Session

_TABLES = "pg_relations.tables"
_INDEXES = "pg_relations.indexes"
_PROGRESS = "pg_relations.vacuum"
_SIZED = 300
"""Maximum number of tables for which sizes are read."""
_MOST = 3000
"""Maximum number of tables or indexes for which the query runs. With more, it would take a considerable part of a
second."""
_SHOWN = 40

_STATES = (7, 12)
"""Columns of a table that contain a current state instead of a counter: the dead tuples and the size."""

_TABLE = """
    select s.relid::regclass, seq_scan, seq_tup_read, idx_scan, n_tup_ins, n_tup_upd, n_tup_del, n_tup_hot_upd,
           n_dead_tup, (coalesce(heap_blks_hit, 0) + coalesce(toast_blks_hit, 0)) * page,
           (coalesce(heap_blks_read, 0) + coalesce(toast_blks_read, 0)) * page,
           vacuum_count + autovacuum_count, analyze_count + autoanalyze_count, {size}
      from pg_stat_user_tables s join pg_statio_user_tables i on i.relid = s.relid,
           (select current_setting('block_size')::bigint as page) b
"""
_USED = " where seq_scan + coalesce(idx_scan, 0) + n_tup_ins + n_tup_upd + n_tup_del + n_dead_tup > 0"
"""Condition that skips unused tables. The condition is used if sizes are not read, because all other values of an
unused table are 0."""
_INDEX = """
    select s.indexrelid::regclass, s.relid::regclass, s.idx_scan, s.idx_tup_read, i.idx_blks_hit * page,
           i.idx_blks_read * page
      from pg_stat_user_indexes s join pg_statio_user_indexes i on i.indexrelid = s.indexrelid,
           (select current_setting('block_size')::bigint as page) b
     where s.idx_scan + i.idx_blks_hit + i.idx_blks_read > 0
"""
_VACUUM = """
    select relid::regclass, phase from pg_stat_progress_vacuum
     where datid = (select oid from pg_database where datname = current_database())
"""


class PgRelations:
    name = "pg_relations"
    doc = "Table and index usage in PostgreSQL during the measured time, and running vacuums"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        if not has_relation(session, "pg_statio_user_tables"):
            return ()
        tables, indexes = (
            int(session.query(f"select count(*) from pg_class where relkind = '{kind}' and oid >= 16384")[0][0] or 0)
            for kind in "ri"
        )
        wanted = [Source(_PROGRESS, "sql", " ".join(_VACUUM.split()))]
        if tables <= _MOST:
            sized = tables <= _SIZED
            text = _TABLE.format(size="pg_table_size(s.relid)") if sized else _TABLE.format(size="null") + _USED
            wanted.append(Source(_TABLES, "sql", " ".join(text.split()), WindowEnds.PERIOD_S))
        if indexes <= _MOST:
            wanted.append(Source(_INDEXES, "sql", " ".join(_INDEX.split()), WindowEnds.PERIOD_S))
        return tuple(wanted)

    def parse(self, samples: Samples, window_s: float) -> Observation:
        used = tables(samples, window_s)
        metrics = {"vacuums": sum(one.vacuums for one in used), "analyzes": sum(one.analyzes for one in used)}
        if not used:
            return Observation()
        if (updated := sum(one.updated for one in used)) > 0:
            metrics["hot_update_share"] = sum(one.hot_updated or 0.0 for one in used) / updated
        return as_published(Observation(metrics))


def tables(samples: Mapping[str, Sequence[Sample]], window_s: float) -> tuple[TableUse, ...]:
    """Returns the tables that were used, sorted by the number of bytes read, which includes cache hits."""
    tables = []
    for (name,), before, now, seen in _grown(samples.get(_TABLES, ()), window_s, 1, 13, _STATES):
        grown = [b - a for a, b in zip(before, now, strict=True)]
        scans, scanned, by_index, inserted, updated, deleted, hot, _, hit, read, vacuums, analyzes, _ = grown
        if scans + by_index + inserted + updated + deleted + vacuums + hit + read <= 0:
            continue
        tables.append(
            TableUse(
                *(name, scans, scanned, by_index, inserted, updated, deleted, hot, hit, read),
                dead_rows=now[7],
                dead_before=before[7],
                bytes=now[12] or None,
                bytes_before=before[12] if now[12] and seen else None,
                vacuums=vacuums,
                analyzes=analyzes,
            )
        )
    return tuple(sorted(tables, key=lambda one: -(one.hit_bytes + one.read_bytes))[:_SHOWN])


def indexes(samples: Mapping[str, Sequence[Sample]], window_s: float) -> tuple[IndexUse, ...]:
    """Returns the indexes that were used, sorted by the number of bytes read, which includes cache hits."""
    indexes = []
    for (name, table), before, now, _ in _grown(samples.get(_INDEXES, ()), window_s, 2, 4):
        grown = [b - a for a, b in zip(before, now, strict=True)]
        if sum(grown) > 0:
            indexes.append(IndexUse(name, table, *grown))
    return tuple(sorted(indexes, key=lambda one: -(one.hit_bytes + one.read_bytes))[:_SHOWN])


def vacuums(samples: Mapping[str, Sequence[Sample]], window_s: float) -> tuple[VacuumRun, ...]:
    snapshots = [one for one in samples.get(_PROGRESS, ()) if 0.0 <= one.t_s <= window_s]
    seen: dict[str, list[str]] = {}
    for row in (row for snapshot in snapshots for row in fields(snapshot) if len(row) == 2):
        seen.setdefault(row[0] or "", []).append(row[1] or "")
    return tuple(
        VacuumRun(table, len(phases) / len(snapshots), tuple(dict.fromkeys(phases))) for table, phases in seen.items()
    )


def _grown(
    samples: Sequence[Sample], window_s: float, keys: int, width: int, states: Collection[int] = ()
) -> list[tuple[tuple[str, ...], list[float], list[float], bool]]:
    """Returns, for each row, its names, its values at both ends of the window, and whether it existed at the start. If
    a row is new or its counters were reset, the counters start from zero.

    `states`: columns that contain a current state instead of a counter. The values of these columns may decrease, and a
    reset does not affect them.
    """
    ends = WindowEnds.of(samples, window_s)
    if ends is None:
        return []
    before, zero = counters(ends.first, keys, width), [0.0] * width
    rows = []
    for names, now in counters(ends.last, keys, width).items():
        then = before.get(names, zero)
        if any(b < a for place, (a, b) in enumerate(zip(then, now, strict=True)) if place not in states):
            then = [value if place in states else 0.0 for place, value in enumerate(then)]
        rows.append((names, then, now, names in before))
    return rows


OBSERVER = PgRelations()
