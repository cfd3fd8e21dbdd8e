"""Probes of tables and indexes."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.engines.examination import ExaminedServer, Readings
from ironbench.engines.mariadb.probes import probe
from ironbench.model.diagnosis import note, ok, warning
from ironbench.model.session import Row
from ironbench.units import stored
from ironbench.words import some

_FOREIGN = """
    select table_name, engine from information_schema.tables
     where table_schema = database() and table_type = 'BASE TABLE' and engine in ('MyISAM', 'Aria', 'MEMORY', 'CSV')
     order by table_name
"""


@probe("tables", "engines", _FOREIGN)
def engines(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Tables whose storage engine does not support transactions."""
    if not rows:
        return ok("all tables use InnoDB")
    return warning(
        some([f"{name} ({engine})" for name, engine in rows]),
        "Writes lock the whole table, cannot be rolled back, and may be lost in a crash.",
        f"ALTER TABLE `{rows[0][0]}` ENGINE = InnoDB",
    )


_KEYLESS = """
    select t.table_name, t.data_length from information_schema.tables t
     where t.table_schema = database() and t.table_type = 'BASE TABLE' and t.engine = 'InnoDB'
       and not exists (select 1 from information_schema.statistics s
                        where s.table_schema = t.table_schema and s.table_name = t.table_name and s.non_unique = 0)
     order by t.data_length desc
"""


@probe("tables", "tables without a key", _KEYLESS)
def keyless(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Tables without a primary or unique key."""
    if not rows:
        return ok("none")
    return note(
        some([f"{name} ({stored(float(size or 0))})" for name, size in rows]),
        "InnoDB generates row IDs from a counter that all such tables share; replicas find changed rows by full scans.",
        f"ALTER TABLE `{rows[0][0]}` ADD PRIMARY KEY (…)",
    )


_BLOAT = """
    select table_name, data_free, data_length + index_length from information_schema.tables
     where table_schema = database() and data_free > 100 * 1024 * 1024 and data_free > data_length + index_length
     order by data_free desc
"""


@probe("tables", "empty space", _BLOAT)
def bloat(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Table files that are more than half empty."""
    if not rows:
        return ok("none above 100 MB")
    return warning(
        some(
            [f"{name} ({stored(float(free or 0))} free, {stored(float(used or 0))} used)" for name, free, used in rows]
        ),
        "Deletes left free space in the files, so scans read more pages than necessary.",
        f"OPTIMIZE TABLE `{rows[0][0]}` (rebuilds the table)",
    )


_TWICE = """
    select table_name, group_concat(index_name order by index_name separator ' = '), min(columns)
      from (select table_name, index_name, index_type,
                   group_concat(concat(column_name, coalesce(sub_part, '')) order by seq_in_index) as columns
              from information_schema.statistics where table_schema = database()
             group by table_name, index_name, index_type) one
     group by table_name, index_type, columns having count(*) > 1
"""


@probe("indexes", "duplicate indexes", _TWICE)
def duplicate(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Indexes on the same columns in the same order."""
    if not rows:
        return ok("none")
    table, names, _ = rows[0]
    last = str(names).rpartition(" = ")[2]
    return warning(
        some([f"{name}: {both} ({columns})" for name, both, columns in rows]),
        "Every write maintains both indexes, although one of the two is enough.",
        f"ALTER TABLE `{table}` DROP INDEX `{last}`",
    )
