"""Use of tables and indexes. performance_schema counts rows and time for each index. `userstat` counts only rows.

The statistics are read at the start and the end of the measured window. The sizes of the tables are read at the same
times, from the server's statistics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from ironbench.engines.window_ends import WindowEnds, counters
from ironbench.errors import IronbenchError
from ironbench.host.tree import Tree
from ironbench.model.inside import IndexUse, TableUse
from ironbench.model.observation import Observation, Sample, Source
from ironbench.model.observer import Samples
from ironbench.model.session import Session

_USED, _SIZES = "maria_relations.used", "maria_relations.sizes"
_MOST = 1000
"""Maximum number of tables for which sizes are read. The server opens every such table."""
_SHOWN = 40
_PS = 1e-12
_COUNTED = """
    select object_name, coalesce(index_name, ''), count_fetch, count_insert, count_update, count_delete, sum_timer_wait
      from performance_schema.table_io_waits_summary_by_index_usage
     where object_schema = database() and object_type = 'TABLE' and count_star > 0
"""
_USERSTAT = """
    select table_name, index_name, rows_read, 0, 0, 0, 0 from information_schema.index_statistics
     where table_schema = database()
    union all
    select t.table_name, '', t.rows_read - coalesce(sum(i.rows_read), 0), 0, t.rows_changed, 0, 0
      from information_schema.table_statistics t
      left join information_schema.index_statistics i
        on i.table_schema = t.table_schema and i.table_name = t.table_name
     where t.table_schema = database() group by t.table_name, t.rows_read, t.rows_changed
"""
_SIZE = """
    select table_name, coalesce(data_length, 0) from information_schema.tables
     where table_schema = database() and table_type = 'BASE TABLE'
"""
Seen = Literal["", "timed", "counted"]


def seen(session: Session) -> Seen:
    """Returns which statistics on tables the server keeps: `timed` for rows and time, `counted` for rows. Returns "" if
    it keeps none."""
    for how, asked, sql in (("timed", "performance_schema", _COUNTED), ("counted", "userstat", _USERSTAT)):
        try:
            if session.query(f"select @@global.{asked}") == [("1",)]:
                session.query(_one_line(sql))
                return "timed" if how == "timed" else "counted"
        except IronbenchError:
            continue
    return ""


def _one_line(sql: str) -> str:
    return " ".join(sql.split())


class MariaRelations:
    name = "maria_relations"
    doc = "Table and index usage in MariaDB during the measured time (performance_schema or userstat)"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        how = seen(session)
        if not how:
            return ()
        used = Source(_USED, "sql", _one_line(_COUNTED if how == "timed" else _USERSTAT), WindowEnds.PERIOD_S)
        count = session.query("select count(*) from information_schema.tables where table_schema = database()")
        if int(count[0][0] or 0) > _MOST:
            return (used,)
        return (used, Source(_SIZES, "sql", _one_line(_SIZE), WindowEnds.PERIOD_S))

    def parse(self, samples: Samples, window_s: float) -> Observation:
        return Observation()


def used(samples: Mapping[str, Sequence[Sample]], window_s: float) -> tuple[tuple[TableUse, ...], tuple[IndexUse, ...]]:
    """Returns the tables and indexes that were used, sorted by the number of rows read and changed."""
    ends = WindowEnds.of(samples.get(_USED, ()), window_s)
    if ends is None:
        return (), ()
    before = counters(ends.first, 2, 5)
    tables: dict[str, list[list[float]]] = {}
    indexes = []
    for (table, index), now in counters(ends.last, 2, 5).items():
        then = before.get((table, index), [0.0] * 5)
        grown = [b - a if b >= a else b for a, b in zip(then, now, strict=True)]
        if sum(grown[:4]) <= 0:
            continue
        tables.setdefault(table, []).append([*grown, 0.0 if index else grown[0]])
        if index:
            indexes.append(IndexUse(index, table, rows=grown[0], time_s=grown[4] * _PS if grown[4] else None))
    sizes = _sizes(samples, window_s)
    found = [_table(name, rows, sizes.get(name)) for name, rows in tables.items()]
    return (
        tuple(
            sorted(found, key=lambda one: -(one.index_rows + one.scanned_rows + one.updated + one.inserted))[:_SHOWN]
        ),
        tuple(sorted(indexes, key=lambda one: -one.rows)[:_SHOWN]),
    )


def _table(name: str, rows: Sequence[Sequence[float]], size: tuple[float, float] | None) -> TableUse:
    fetched, inserted, updated, deleted, time_ps, scanned = (sum(column) for column in zip(*rows, strict=True))
    return TableUse(
        name,
        scanned_rows=scanned,
        index_rows=fetched - scanned,
        inserted=inserted,
        updated=updated,
        deleted=deleted,
        hot_updated=None,
        dead_rows=None,
        dead_before=None,
        bytes=size[1] if size else None,
        bytes_before=size[0] if size else None,
        time_s=time_ps * _PS if time_ps else None,
    )


def _sizes(samples: Mapping[str, Sequence[Sample]], window_s: float) -> dict[str, tuple[float, float]]:
    """Returns the sizes of the tables at the start and the end of the window."""
    ends = WindowEnds.of(samples.get(_SIZES, ()), window_s)
    if ends is None:
        return {}
    first, last = counters(ends.first, 1, 1), counters(ends.last, 1, 1)
    return {name: (first.get((name,), now)[0], now[0]) for (name,), now in last.items()}


OBSERVER = MariaRelations()
