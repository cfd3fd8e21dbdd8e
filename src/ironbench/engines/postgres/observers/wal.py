"""PostgreSQL's WAL: bytes, and full page images after checkpoints (pg_stat_wal).

The number of bytes is computed from the insert position, which is always current. Backends update pg_stat_wal at most
once a second (PostgreSQL 18 documentation, 27.2.1), so its number would miss a part of a short trial.
"""

from __future__ import annotations

from ironbench.engines.postgres.observers.catalog import as_published, has_relation
from ironbench.host.tree import Tree
from ironbench.model.observation import Observation, Source
from ironbench.model.observer import Samples
from ironbench.model.points import Values, count_rate_of, growth, number, points, rate_series, rows, steps
from ironbench.model.session import Session

_SOURCE = "pg_wal.view"
_POSITION = "insert_position"
_RATES = {
    "wal_bytes_per_s": "wal_bytes",
    "wal_records_per_s": "wal_records",
    "wal_full_pages_per_s": "wal_fpi",
    "wal_buffers_full_per_s": "wal_buffers_full",
}


class PgWal:
    name = "pg_wal"
    doc = "PostgreSQL's WAL: bytes, records, full-page images, and waits for WAL buffers"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        if not has_relation(session, "pg_stat_wal"):
            return ()
        position = "case when not pg_is_in_recovery() then pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') end"
        sql = f"select to_jsonb(s) || jsonb_build_object('{_POSITION}', {position}) from pg_stat_wal s"
        return (Source(_SOURCE, "sql", sql),)

    def parse(self, samples: Samples, window_s: float) -> Observation:
        readings = points(samples.get(_SOURCE), _parse)
        if (grown := growth(readings, window_s)) is None:
            return Observation()
        each = steps(readings)
        observation = Observation(
            {name: grown.count_rate(key) for name, key in _RATES.items() if key in grown.by},
            tuple(rate_series(name, each, count_rate_of(key)) for name, key in _RATES.items()),
        )
        return as_published(observation, at_once=("wal_bytes_per_s",))


def _parse(text: str) -> Values:
    row = rows(text)[0]
    values = {key: number(row, key) for key in _RATES.values()}
    return values | ({"wal_bytes": number(row, _POSITION)} if row.get(_POSITION) is not None else {})


OBSERVER = PgWal()
