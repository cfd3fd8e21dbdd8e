"""PostgreSQL's write backlog at the end of a trial: WAL that crash recovery would replay
(`wal_since_checkpoint_bytes`), and dirty pages in shared buffers. Dirty pages are counted only if the extension
pg_buffercache is installed."""

from __future__ import annotations

from ironbench.engines.postgres.observers.catalog import has_function
from ironbench.host.tree import Tree
from ironbench.model.observation import Observation, Source
from ironbench.model.observer import Samples
from ironbench.model.points import Values, gauge_series, last_within, points
from ironbench.model.session import Session

_WAL = "pg_debt.wal"
_BUFFERS = "pg_debt.buffers"
_PERIOD_S = 5.0
"""Sampling period in seconds. Only the reading at the end of the window is used. The core always takes this reading, so
any period is suitable."""


class PgDebt:
    name = "pg_debt"
    doc = "PostgreSQL's WAL since the last checkpoint, and its dirty shared buffers"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        sources = []
        if has_function(session, "pg_control_checkpoint()"):
            sql = "select pg_current_wal_insert_lsn() - redo_lsn from pg_control_checkpoint()"
            sources.append(Source(_WAL, "sql", sql, _PERIOD_S))
        if has_function(session, "pg_buffercache_summary()"):
            sql = "select buffers_dirty * current_setting('block_size')::bigint from pg_buffercache_summary()"
            sources.append(Source(_BUFFERS, "sql", sql, _PERIOD_S))
        return tuple(sources)

    def parse(self, samples: Samples, window_s: float) -> Observation:
        wal, buffers = points(samples.get(_WAL), _parse), points(samples.get(_BUFFERS), _parse)
        metrics: dict[str, float] = {}
        if (end := last_within(buffers, window_s)) is not None:
            metrics["dirty_buffers_left_bytes"] = end.values["bytes"]
        if (end := last_within(wal, window_s)) is not None:
            metrics["wal_since_checkpoint_bytes"] = end.values["bytes"]
        series = (gauge_series("wal_since_checkpoint_bytes", wal, "bytes"),) if wal else ()
        return Observation(metrics, series)


def _parse(text: str) -> Values:
    return {"bytes": float(text.strip())}


OBSERVER = PgDebt()
