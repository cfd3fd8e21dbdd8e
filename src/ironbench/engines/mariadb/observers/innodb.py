"""InnoDB's counters of I/O, log, buffer pool, rows and locks (SHOW GLOBAL STATUS, information_schema.innodb_metrics).

A read is counted for a page or an extent that was not in the buffer pool. By default, files are opened with
`innodb_flush_method=O_DIRECT`, so such a read comes from the device. Syncs of data files and of the log are counted
together.
"""

from __future__ import annotations

from functools import partial

from ironbench.engines.administration import REQUEST
from ironbench.engines.dialect import listed
from ironbench.errors import IronbenchError
from ironbench.host.tree import Tree
from ironbench.model.observation import Observation, Source
from ironbench.model.observer import Samples
from ironbench.model.points import (
    CounterGrowth,
    Values,
    gauge_series,
    growth,
    last_within,
    points,
    present,
    rate_series,
    steps,
)
from ironbench.model.session import Session

_SOURCE = "innodb.status"
_COST_S = 1e-3
_RATES: dict[str, tuple[str, ...]] = {
    "engine_commits_per_s": ("trx_rw_commits", "trx_ro_commits", "trx_nl_ro_commits"),
    "engine_rollbacks_per_s": ("trx_rollbacks",),
    "writing_transactions_per_s": ("trx_rw_commits",),
    "rows_read_per_s": ("HANDLER_READ_FIRST", "HANDLER_READ_KEY", "HANDLER_READ_NEXT", "HANDLER_READ_PREV"),
    "rows_changed_per_s": ("HANDLER_WRITE", "HANDLER_UPDATE", "HANDLER_DELETE"),
    "wal_bytes_per_s": ("INNODB_OS_LOG_WRITTEN",),
    "wal_records_per_s": ("INNODB_LOG_WRITE_REQUESTS",),
    "wal_buffers_full_per_s": ("INNODB_LOG_WAITS",),
    "engine_reads_per_s{object=relation}": ("INNODB_DATA_READS",),
    "engine_read_bytes_per_s{object=relation}": ("INNODB_DATA_READ",),
    "engine_writes_per_s{object=relation}": ("INNODB_DATA_WRITES",),
    "engine_write_bytes_per_s{object=relation}": ("INNODB_DATA_WRITTEN",),
    "engine_writes_per_s{object=wal}": ("INNODB_LOG_WRITES",),
    "engine_write_bytes_per_s{object=wal}": ("INNODB_OS_LOG_WRITTEN",),
    "engine_fsyncs_per_s{object=all}": ("INNODB_DATA_FSYNCS",),
    "lock_waits_per_s": ("INNODB_ROW_LOCK_WAITS",),
}
_HITS, _READS = "INNODB_BUFFER_POOL_READ_REQUESTS", "INNODB_BUFFER_POOL_READS"
_COUNTS = {"deadlocks": "INNODB_DEADLOCKS", "spill_files": "CREATED_TMP_FILES"}
_AGE, _DIRTY, _PURGE = "INNODB_CHECKPOINT_AGE", "INNODB_BUFFER_POOL_BYTES_DIRTY", "INNODB_HISTORY_LIST_LENGTH"
_STATUS = sorted(
    {name for names in _RATES.values() for name in names if name.isupper()}
    | {_HITS, _READS, _AGE, _DIRTY, _PURGE, *_COUNTS.values()}
)
_METRICS = sorted({name for names in _RATES.values() for name in names if not name.isupper()})
_SQL = (
    "select variable_name, variable_value from {schema}.global_status where variable_name in ({status}) "
    "union all select name, count from information_schema.innodb_metrics where name in ({metrics}) and {enabled}"
)


class Innodb:
    name = "innodb"
    doc = "InnoDB's counters: commits, rows, I/O, redo log, buffer pool hits, lock waits and checkpoint age"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        try:
            maria = "MariaDB" in (session.query("select version()")[0][0] or "")
            words = {
                "schema": "information_schema" if maria else "performance_schema",
                "status": listed(_STATUS),
                "metrics": listed(_METRICS),
                "enabled": "enabled = 1" if maria else "status = 'enabled'",
            }
            sql = _SQL.format_map(words)
            session.query(sql)
        except (IronbenchError, IndexError):
            return ()
        return (Source(_SOURCE, "sql", sql, cost_s=_COST_S),)

    def parse(self, samples: Samples, window_s: float) -> Observation:
        metrics: dict[str, float] = {}
        if (answers := samples.get(REQUEST)) is not None:
            # Only full checkpoints that ironbench requested are counted. InnoDB's own checkpoint advances many times a
            # minute.
            done = float(sum(0.0 <= answer.t_s <= window_s for answer in answers))
            metrics = {"checkpoints_requested": done, "checkpoints": done}
        readings = points(samples.get(_SOURCE), _parse)
        if (grown := growth(readings, window_s)) is None:
            return Observation(metrics)
        each = steps(readings)
        rates = {name: keys for name, keys in _RATES.items() if grown.by.keys() >= set(keys)}
        metrics |= {name: _rate(grown, keys) for name, keys in rates.items()}
        metrics |= {name: grown.count(key) for name, key in _COUNTS.items() if key in grown.by}
        metrics |= present({"cache_hit_share": _hit_share(grown)})
        if (end := last_within(readings, window_s)) is not None:
            gauges = {"wal_since_checkpoint_bytes": _AGE, "dirty_buffers_left_bytes": _DIRTY, "purge_lag": _PURGE}
            metrics |= {name: end.values[key] for name, key in gauges.items() if key in end.values}
        series = [rate_series(name, each, partial(_rate, keys=keys)) for name, keys in rates.items()]
        series.append(rate_series("cache_hit_share", each, _hit_share))
        series += [
            gauge_series(name, readings, key)
            for name, key in (("wal_since_checkpoint_bytes", _AGE), ("purge_lag", _PURGE))
            if any(key in reading.values for reading in readings)
        ]
        return Observation(metrics, tuple(series))


def _rate(grown: CounterGrowth, keys: tuple[str, ...]) -> float:
    return sum(grown.count_rate(key) for key in keys)


def _hit_share(grown: CounterGrowth) -> float | None:
    asked, read = grown.by.get(_HITS, 0.0), grown.by.get(_READS, 0.0)
    return max(0.0, 1 - read / asked) if asked > 0 else None


def _parse(text: str) -> Values:
    pairs = (line.split("\t") for line in text.splitlines())
    values = {name: float(value) for name, value in pairs}
    # MySQL's names of status variables are in mixed case.
    return {name if name in _METRICS else name.upper(): value for name, value in values.items()}


OBSERVER = Innodb()
