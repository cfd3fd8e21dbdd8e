"""Statistics of the database: commits and rollbacks, cache hits, rows, and temporary files (pg_stat_database).

A transaction gets an id when it first writes (PostgreSQL 18 documentation, 67.1). The next free id therefore shows how
many transactions have written. This number covers all sessions and all kinds of changes.
"""

from __future__ import annotations

from functools import partial

from ironbench.engines.postgres.observers.catalog import as_published, has_relation
from ironbench.host.tree import Tree
from ironbench.model.observation import Observation, Source
from ironbench.model.observer import Samples
from ironbench.model.points import CounterGrowth, Values, growth, number, points, present, rate_series, rows, steps
from ironbench.model.session import Session

_SOURCE = "pg_database.view"
_COLUMNS = (
    "xact_commit",
    "xact_rollback",
    "blks_read",
    "blks_hit",
    "tup_returned",
    "tup_fetched",
    "tup_inserted",
    "tup_updated",
    "tup_deleted",
    "temp_files",
    "temp_bytes",
    "deadlocks",
    "next_number",
)
_RATES: dict[str, tuple[str, ...]] = {
    "engine_commits_per_s": ("xact_commit",),
    "engine_rollbacks_per_s": ("xact_rollback",),
    "rows_read_per_s": ("tup_returned", "tup_fetched"),
    "rows_changed_per_s": ("tup_inserted", "tup_updated", "tup_deleted"),
    "spill_bytes_per_s": ("temp_bytes",),
    "writing_transactions_per_s": ("next_number",),
}


class PgDatabase:
    name = "pg_database"
    doc = "PostgreSQL's counters: commits, cache hits, rows, temp files and deadlocks"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        if not has_relation(session, "pg_stat_database"):
            return ()
        number = "jsonb_build_object('next_number', txid_snapshot_xmax(txid_current_snapshot()))"
        sql = f"select to_jsonb(s) - 'datname' || {number} from pg_stat_database s where datname = current_database()"
        return (Source(_SOURCE, "sql", sql),)

    def parse(self, samples: Samples, window_s: float) -> Observation:
        readings = points(samples.get(_SOURCE), _parse)
        if (grown := growth(readings, window_s)) is None:
            return Observation()
        each = steps(readings)
        rates = {name: columns for name, columns in _RATES.items() if grown.by.keys() >= set(columns)}
        metrics = {name: _rate(grown, columns) for name, columns in rates.items()}
        metrics["deadlocks"] = grown.count("deadlocks")
        metrics["spill_files"] = grown.count("temp_files")
        series = [rate_series(name, each, partial(_rate, columns=columns)) for name, columns in rates.items()]
        series.append(rate_series("cache_hit_share", each, _hit_share))
        observation = Observation(metrics | present({"cache_hit_share": _hit_share(grown)}), tuple(series))
        return as_published(observation, at_once=("writing_transactions_per_s",))


def _rate(grown: CounterGrowth, columns: tuple[str, ...]) -> float:
    return sum(grown.count_rate(column) for column in columns)


def _hit_share(grown: CounterGrowth) -> float | None:
    hits, reads = grown.by.get("blks_hit", 0.0), grown.by.get("blks_read", 0.0)
    return hits / (hits + reads) if hits + reads > 0 else None


def _parse(text: str) -> Values:
    row = rows(text)[0]
    return {column: number(row, column) for column in _COLUMNS if column in row}


OBSERVER = PgDatabase()
