"""Lag of PostgreSQL's slowest replica (pg_stat_replication).

The lag in seconds is `replay_lag`. This lag starts when the server flushes a change, and ends when the replica reports
that it has replayed the change. If a replica no longer responds, the server keeps showing its last value (PostgreSQL 18
documentation, 27.2.4). The lag in bytes still grows in this case.
"""

from __future__ import annotations

from ironbench.engines.postgres.observers.catalog import has_replicas
from ironbench.host.tree import Tree
from ironbench.model.observation import Observation, Source
from ironbench.model.observer import Samples
from ironbench.model.points import Values, gauge_series, most_within, number, points, present, rows
from ironbench.model.session import Session

_SOURCE = "pg_replication.view"
_PERIOD_S = 0.25
_METRICS = {"replication_lag_s": "seconds", "replication_lag_bytes": "bytes"}


class PgReplication:
    name = "pg_replication"
    doc = "Replication lag of PostgreSQL's slowest replica, in seconds and bytes of WAL"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        if not has_replicas(session):
            return ()
        sql = (
            "select jsonb_build_object('seconds', coalesce(max(extract(epoch from replay_lag)), 0), 'bytes', "
            "max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn))) from pg_stat_replication having count(*) > 0"
        )
        return (Source(_SOURCE, "sql", sql, _PERIOD_S),)

    def parse(self, samples: Samples, window_s: float) -> Observation:
        readings = points(samples.get(_SOURCE), _parse)
        if not readings:
            return Observation()
        metrics = {name: most_within(readings, key, window_s) for name, key in _METRICS.items()}
        return Observation(present(metrics), tuple(gauge_series(name, readings, key) for name, key in _METRICS.items()))


def _parse(text: str) -> Values:
    row = rows(text)[0]
    return {key: number(row, key) for key in _METRICS.values()}


OBSERVER = PgReplication()
