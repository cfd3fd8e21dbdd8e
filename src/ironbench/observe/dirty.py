"""Work still owed to the devices when the trial ends: without it, a system that only postpones looks fast.

`dirty_left_bytes`: pages changed in the kernel's cache and not yet written (Dirty + Writeback) plus, where the
extension pg_buffercache is installed, changed pages in PostgreSQL's own buffers. `wal_since_checkpoint_bytes`: log that
a crash at the end of the trial would have to replay.
"""

from __future__ import annotations

from ironbench.machine.tree import Tree
from ironbench.model.observation import Observation, Source
from ironbench.model.session import Session
from ironbench.observe.base import Samples
from ironbench.observe.memory import parse_meminfo
from ironbench.observe.points import Values, gauge_series, last_within, points
from ironbench.observe.postgres import has_function, is_postgres

_KERNEL = "dirty.meminfo"
_WAL = "dirty.wal"
_BUFFERS = "dirty.buffers"
_PERIOD_S = 5.0
"""Only the reading at the end of the window counts, which the core takes whatever the period."""


class Dirty:
    name = "dirty"
    doc = "Changed data left to write at the end of the trial, and log since the last checkpoint"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        found = [Source(_KERNEL, "file", "/proc/meminfo", _PERIOD_S)]
        if is_postgres(session) and has_function(session, "pg_control_checkpoint()"):
            sql = "select pg_current_wal_insert_lsn() - redo_lsn from pg_control_checkpoint()"
            found.append(Source(_WAL, "sql", sql, _PERIOD_S))
        if is_postgres(session) and has_function(session, "pg_buffercache_summary()"):
            sql = "select buffers_dirty * current_setting('block_size')::bigint from pg_buffercache_summary()"
            found.append(Source(_BUFFERS, "sql", sql, _PERIOD_S))
        return tuple(found)

    def parse(self, samples: Samples, window_s: float) -> Observation:
        kernel = points(samples.get(_KERNEL), _parse_kernel)
        wal = points(samples.get(_WAL), _parse_number)
        buffers = points(samples.get(_BUFFERS), _parse_number)
        metrics: dict[str, float] = {}
        if (end := last_within(kernel, window_s)) is not None:
            metrics["dirty_left_bytes"] = end.values["bytes"]
        if (end := last_within(buffers, window_s)) is not None:
            metrics["dirty_buffers_left_bytes"] = end.values["bytes"]
            metrics["dirty_left_bytes"] = metrics.get("dirty_left_bytes", 0.0) + end.values["bytes"]
        if (end := last_within(wal, window_s)) is not None:
            metrics["wal_since_checkpoint_bytes"] = end.values["bytes"]
        series = (gauge_series("wal_since_checkpoint_bytes", wal, "bytes"),) if wal else ()
        return Observation(metrics, series)


def _parse_kernel(text: str) -> Values:
    values = parse_meminfo(text)
    return {"bytes": values["Dirty"] + values.get("Writeback", 0.0)}


def _parse_number(text: str) -> Values:
    return {"bytes": float(text.strip())}


OBSERVER = Dirty()
