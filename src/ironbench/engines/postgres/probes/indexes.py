"""Probes of indexes: unused, missing, invalid, duplicate."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.engines.examination import ExaminedServer, Readings
from ironbench.engines.postgres.probes import probe, since
from ironbench.model.diagnosis import note, ok, warning
from ironbench.model.session import Row
from ironbench.units import span, stored
from ironbench.words import counted, grouped, some

_WEEK_S = 7 * 86400.0

_UNUSED = f"""
    select s.indexrelid::regclass, pg_relation_size(s.indexrelid),
           (select {since("coalesce(stats_reset, pg_postmaster_start_time())")}
              from pg_stat_database where datname = current_database()),
           quote_ident(s.schemaname) || '.' || quote_ident(s.indexrelname),
           exists (select from pg_constraint c
                    where c.contype = 'f' and c.conrelid = i.indrelid and i.indpred is null
                      and (i.indkey::int2[])[0:cardinality(c.conkey) - 1] @> c.conkey)
      from pg_stat_user_indexes s join pg_index i on i.indexrelid = s.indexrelid
     where s.idx_scan = 0 and not i.indisunique and i.indisvalid and pg_relation_size(s.indexrelid) >= 1000000
       and not exists (select from pg_constraint where conindid = s.indexrelid)
     order by 2 desc
"""


@probe("indexes", "unused indexes", _UNUSED)
def unused(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Indexes of more than 1 MB that no statement has read since the statistics were reset."""
    if not rows:
        return ok("none")
    over_s = float(rows[0][2] or 0)
    sizes = [
        f"{name} ({stored(float(size or 0))}{', supports a foreign key' if of_key == 't' else ''})"
        for name, size, _, _, of_key in rows
    ]
    seen = f"{some(sizes)}: no scans in {span(over_s)}"
    meaning = "Inserts and most updates maintain these indexes, which also use cache, WAL and vacuum time."
    # An index that supports a foreign key is read only when a referenced row is deleted or its key changes, so it may
    # have no scans.
    free = [name for _, _, _, name, of_key in rows if of_key != "t"]
    if not free:
        remedy = "keep indexes that support a foreign key, unless referenced rows are never deleted"
        return note(seen, f"{meaning} Deletes of referenced rows use these indexes.", remedy)
    remedy = f"if no replica uses the index either: DROP INDEX CONCURRENTLY {free[0]}"
    if over_s < _WEEK_S:
        return note(seen, meaning, f"check again when the statistics cover a week; {remedy}")
    return warning(seen, meaning, remedy)


_MISSING = """
    select relid::regclass, seq_scan, seq_tup_read / seq_scan, pg_table_size(relid)
      from pg_stat_user_tables
     where seq_scan >= 50 and seq_tup_read / seq_scan >= 10000
     order by seq_tup_read desc
"""


@probe("indexes", "missing indexes", _MISSING)
def missing(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Large tables with frequent full scans."""
    if not rows:
        return ok("no frequent sequential scans of large tables")
    tables = [
        f"{name} ({stored(float(size or 0))}, {grouped(int(scans or 0))} scans of {grouped(int(read or 0))} rows)"
        for name, scans, read, size in rows
    ]
    return warning(
        some(tables),
        (
            "Statements scan the whole table. If the statements need only few rows, an index would avoid nearly all "
            "of that work."
        ),
        "find the statements (pg_stat_statements) and their plans (EXPLAIN); measure the effect of an index with a lab",
    )


_INVALID = """
    select i.indexrelid::regclass, i.indrelid::regclass, pg_relation_size(i.indexrelid)
      from pg_index i
     where not i.indisvalid
       and not exists (select from pg_stat_progress_create_index p where p.index_relid = i.indexrelid)
"""


@probe("indexes", "invalid indexes", _INVALID)
def invalid(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Indexes that an interrupted CREATE INDEX CONCURRENTLY left incomplete."""
    if not rows:
        return ok("none")
    return warning(
        some([f"{name} on {table}" for name, table, _ in rows]),
        "Invalid indexes are maintained by every write and never used.",
        f"REINDEX INDEX CONCURRENTLY {rows[0][0]}; or DROP INDEX CONCURRENTLY {rows[0][0]}",
    )


_TWICE = """
    select string_agg(i.indexrelid::regclass::text, ' = ' order by i.indisunique desc, i.indexrelid),
           sum(pg_relation_size(i.indexrelid)) - max(pg_relation_size(i.indexrelid)),
           (array_agg(i.indexrelid::regclass::text order by i.indisunique desc, i.indexrelid))[2]
      from pg_index i join pg_class c on c.oid = i.indexrelid
     where i.indrelid >= 16384
     group by i.indrelid, c.relam, i.indkey::text, i.indclass::text, i.indcollation::text, i.indoption::text,
              coalesce(pg_get_expr(i.indexprs, i.indrelid), ''), coalesce(pg_get_expr(i.indpred, i.indrelid), '')
    having count(*) > 1
     order by 2 desc
"""


@probe("indexes", "duplicate indexes", _TWICE)
def duplicate(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Indexes on the same columns in the same order."""
    if not rows:
        return ok("none")
    size = sum(float(more or 0) for _, more, _ in rows)
    return warning(
        f"{some([str(names) for names, _, _ in rows])}; {stored(size)} redundant",
        "Every write maintains both indexes, although one of the two is enough.",
        f"DROP INDEX CONCURRENTLY {rows[0][2]} (if it belongs to a constraint: ALTER TABLE … DROP CONSTRAINT)",
    )


_KEYS = """
    select c.conrelid::regclass, c.confrelid::regclass, pg_table_size(c.conrelid), p.n_tup_del + p.n_tup_upd,
           (select string_agg(quote_ident(a.attname), ', ' order by k.place)
              from unnest(c.conkey) with ordinality k (number, place)
              join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.number)
      from pg_constraint c join pg_stat_user_tables p on p.relid = c.confrelid
     where c.contype = 'f' and p.n_tup_del > 0 and pg_table_size(c.conrelid) >= 1000000
       and not exists (select from pg_index i
                        where i.indrelid = c.conrelid and i.indisvalid and i.indpred is null
                          and (i.indkey::int2[])[0:cardinality(c.conkey) - 1] @> c.conkey)
     order by pg_table_size(c.conrelid) desc
"""


@probe("indexes", "foreign keys without an index", _KEYS)
def foreign_keys(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Tables that are scanned completely when a row that they reference is deleted."""
    if not rows:
        return ok("none on large tables with deletes")
    child, parent, size, _, columns = rows[0]
    names = [f"{one[0]} ({one[4]}) → {one[1]}" for one in rows]
    return warning(
        some(names),
        f"Every delete in {parent} scans {child} ({stored(float(size or 0))}). "
        f"In total, {counted(len(rows), 'foreign key')} {'has' if len(rows) == 1 else 'have'} no index.",
        f"CREATE INDEX CONCURRENTLY ON {child} ({columns})",
    )
