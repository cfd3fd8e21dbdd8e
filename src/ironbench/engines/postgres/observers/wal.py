"""PostgreSQL's log: how much of it is written, and how much of that is whole pages after a checkpoint (pg_stat_wal)."""

from __future__ import annotations

from ironbench.engines.postgres.observers.catalog import has_relation
from ironbench.machine.tree import Tree
from ironbench.model.observation import Observation, Source
from ironbench.model.observer import Samples
from ironbench.model.points import Values, growth, number, points, rate_of, rate_series, rows, steps
from ironbench.model.session import Session

_SOURCE = "pg_wal.view"
_RATES = {
    "wal_bytes_per_s": "wal_bytes",
    "wal_records_per_s": "wal_records",
    "wal_full_pages_per_s": "wal_fpi",
    "wal_buffers_full_per_s": "wal_buffers_full",
}


class PgWal:
    name = "pg_wal"
    doc = "PostgreSQL's log: bytes, records, full pages, and waits for log buffers"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        if not has_relation(session, "pg_stat_wal"):
            return ()
        return (Source(_SOURCE, "sql", "select to_jsonb(s) from pg_stat_wal s"),)

    def parse(self, samples: Samples, window_s: float) -> Observation:
        readings = points(samples.get(_SOURCE), _parse)
        if (grown := growth(readings, window_s)) is None:
            return Observation()
        each = steps(readings)
        return Observation(
            {name: grown.rate(key) for name, key in _RATES.items() if key in grown.by},
            tuple(rate_series(name, each, rate_of(key)) for name, key in _RATES.items()),
        )


def _parse(text: str) -> Values:
    row = rows(text)[0]
    return {key: number(row, key) for key in _RATES.values()}


OBSERVER = PgWal()
