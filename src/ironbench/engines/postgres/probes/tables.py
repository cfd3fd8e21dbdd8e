"""Probes of tables: dead tuples, bloat, vacuums, and the age of the oldest rows."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.engines.examination import ExaminedServer, Readings
from ironbench.engines.postgres.probes import probe
from ironbench.model.diagnosis import ok, severe, warning
from ironbench.model.session import Row
from ironbench.units import stored
from ironbench.words import grouped, in_percent, some

_AGE_SEVERE = 1_500_000_000
"""The finding is severe from this age of the oldest unfrozen row. The age is a number of transactions. At about 2.1e9,
the server refuses new transactions."""


_DEAD = """
    select relid::regclass, n_dead_tup, n_live_tup
      from pg_stat_user_tables
     where n_dead_tup > 10000 and n_dead_tup > 0.2 * n_live_tup
     order by n_dead_tup desc
"""


@probe("tables", "dead tuples", _DEAD)
def dead(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Dead tuples that no vacuum has removed yet."""
    if not rows:
        return ok("few")
    return warning(
        some([f"{name} ({grouped(int(gone or 0))} dead, {grouped(int(live or 0))} live)" for name, gone, live in rows]),
        "Scans read dead tuples, and autovacuum may start during a trial. If dead tuples remain after a vacuum, "
        "an old transaction, a prepared transaction or a replication slot prevents their removal.",
        f"VACUUM (VERBOSE, ANALYZE) {rows[0][0]}; for good: ALTER TABLE … SET (autovacuum_vacuum_scale_factor = 0.02)",
    )


# A row has a header of 23 bytes with padding, a line pointer, and values (PostgreSQL 18 documentation, 66.6). Padding
# between values is unknown, so only tables of more than twice the expected size count as bloated.
_BLOAT = """
    select relation, bytes, expected
      from (select c.oid::regclass as relation, c.relpages::bigint * bs.size as bytes,
                   ceil(c.reltuples * (4 + ceil((24 + sum((1 - s.null_frac) * s.avg_width)) / 8) * 8)
                        / (bs.size - 24)
                        / (coalesce(substring(c.reloptions::text from 'fillfactor=(\\d+)')::int, 100) / 100.0))
                   * bs.size as expected
              from pg_class c
              join pg_namespace n on n.oid = c.relnamespace
              join pg_stats s on s.schemaname = n.nspname and s.tablename = c.relname and not s.inherited,
                   (select current_setting('block_size')::int as size) bs
             where c.relkind = 'r' and c.oid >= 16384 and c.reltuples >= 0 and c.relpages > 1000
             group by c.oid, n.nspname, bs.size
            having count(*) = (select count(*) from pg_attribute a
                                where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped)) t
     where bytes > 2 * expected
     order by bytes - expected desc
"""


@probe("tables", "bloat", _BLOAT)
def bloat(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Tables that are much larger than their rows require (bloat)."""
    if not rows:
        return ok("no table above 8 MB is more than twice as large as its rows")
    tables = [
        f"{name} ({stored(float(size or 0))}, about {stored(float(least or 0))} of rows)" for name, size, least in rows
    ]
    return warning(
        some(tables),
        "Scans read empty space, which also occupies the cache. This is an estimate from column statistics; for "
        "exact numbers, use the extension pgstattuple.",
        f"VACUUM FULL {rows[0][0]} (locks the table), or pg_repack; first find out why vacuum did not keep up",
    )


@probe("tables", "autovacuum", "select current_setting('autovacuum'), current_setting('track_counts')")
def autovacuum(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Whether tables are vacuumed and analysed automatically."""
    missing = [name for name, value in zip(("autovacuum", "track_counts"), rows[0], strict=True) if value != "on"]
    if not missing:
        return ok("on")
    return severe(
        f"{' and '.join(missing)} off",
        "Dead tuples are not removed and statistics are not updated: the database becomes slower over time, and "
        "finally stops accepting writes to prevent transaction ID wraparound.",
        "; ".join(f"ALTER SYSTEM SET {name} = 'on'" for name in missing) + "; SELECT pg_reload_conf()",
    )


_EXCEPTED = """
    select oid::regclass from pg_class
     where relkind in ('r', 'm') and reloptions::text ~ 'autovacuum_enabled=(false|off|no|0)'
"""


@probe("tables", "tables without autovacuum", _EXCEPTED)
def excepted(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Tables for which autovacuum is disabled."""
    if not rows:
        return ok("none")
    return warning(
        some([str(name) for (name,) in rows]),
        "Dead tuples and outdated statistics remain until these tables are vacuumed by hand.",
        f"ALTER TABLE {rows[0][0]} RESET (autovacuum_enabled)",
    )


_AGE = """
    select datname, age(datfrozenxid), mxid_age(datminmxid),
           current_setting('autovacuum_freeze_max_age')::bigint,
           current_setting('autovacuum_multixact_freeze_max_age')::bigint
      from pg_database order by greatest(age(datfrozenxid), mxid_age(datminmxid)) desc limit 1
"""


@probe("tables", "wraparound", _AGE)
def wraparound(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Age of the oldest unfrozen row in transactions: transaction ids wrap around after two billion."""
    name = rows[0][0]
    age, many, most, most_many = (int(value or 0) for value in rows[0][1:])
    seen = f"{grouped(age)} transactions in database {name}"
    if max(age, many) >= _AGE_SEVERE:
        return severe(
            seen,
            f"At an age of 2,147 million, the server rejects new transactions ({in_percent(max(age, many) / 2**31)} "
            "of this limit is reached).",
            "act today: end old transactions, drop old replication slots, then VACUUM (FREEZE) the oldest tables",
        )
    if age > 1.5 * most or many > 1.5 * most_many:
        return warning(
            f"{seen}; autovacuum freezes from {grouped(most)}",
            "Autovacuum does not keep up. To freeze tables, autovacuum scans the whole tables, possibly during trials.",
            "VACUUM (FREEZE) the oldest tables at a quiet time, and look for old transactions and slots",
        )
    return ok(seen)
