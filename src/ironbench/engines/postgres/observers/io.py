"""PostgreSQL's statistics of its I/O (pg_stat_io, since version 16). The statistics contain the reads, writes and syncs
of each type of process and of each type of object.

A read is a request to the kernel. The page cache may serve it without the device. Times exist only with
`track_io_timing` (relations) and `track_wal_io_timing` (WAL). Before version 18, WAL writes and syncs were in
pg_stat_wal.
"""

from __future__ import annotations

from collections.abc import Callable

from ironbench.engines.postgres.observers.catalog import as_published, has_relation
from ironbench.host.tree import Tree
from ironbench.model.observation import Observation, Series, Source
from ironbench.model.observer import Samples
from ironbench.model.points import (
    CounterGrowth,
    Values,
    count_rate_of,
    growth,
    number,
    points,
    rate_series,
    ratio_of,
    rows,
    steps,
    volume_rate_of,
)
from ironbench.model.session import Session

_SOURCE = "pg_io.view"
_KINDS = ("read", "write", "extend", "fsync")
_OBJECTS = {"relation": "relation", "temp relation": "temp", "wal": "wal"}
"""The label in ironbench's metrics for each object type in pg_stat_io."""


class PgIo:
    name = "pg_io"
    doc = "PostgreSQL's reads, writes, file extensions and fsyncs, by kind of file and by kind of process"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        if not has_relation(session, "pg_stat_io"):
            return ()
        # Most of the 80 combinations never occur and are not read. If a combination appears later, its counters started
        # from 0.
        sql = (
            "select to_jsonb(s) || jsonb_build_object('page', current_setting('block_size')::int) from pg_stat_io s "
            "where coalesce(reads, 0) + coalesce(writes, 0) + coalesce(extends, 0) + coalesce(fsyncs, 0) > 0"
        )
        return (Source(_SOURCE, "sql", sql),)

    def parse(self, samples: Samples, window_s: float) -> Observation:
        readings = points(samples.get(_SOURCE), _parse)
        if (grown := growth(readings, window_s)) is None:
            return Observation()
        each = steps(readings)
        metrics: dict[str, float] = {}
        series: list[Series] = []
        for label in sorted({key.rpartition("|")[0] for key in grown.by}):
            for name, value in _measures(label).items():
                whole = value(grown)
                if whole:
                    series.append(rate_series(name, each, value))
                    if "backend=" not in label:
                        metrics[name] = whole
        written = sum(grown.count(f"object={word}|write") for word in ("relation", "temp"))
        by_backends = grown.count("backend=client backend,object=relation|write")
        if written:
            metrics["engine_backend_write_share"] = by_backends / written
        return as_published(Observation(metrics, tuple(series)))


def _measures(label: str) -> dict[str, Callable[[CounterGrowth], float | None]]:
    """Returns the metrics of a label. For each metric, the result contains a function that computes it from the
    counters."""
    measures: dict[str, Callable[[CounterGrowth], float | None]] = {}
    for kind in _KINDS:
        counter = f"{label}|{kind}"
        measures[f"engine_{kind}s_per_s{{{label}}}"] = count_rate_of(counter)
        if kind != "fsync":
            measures[f"engine_{kind}_bytes_per_s{{{label}}}"] = volume_rate_of(f"{counter}_bytes", counter)
        measures[f"engine_{kind}_latency_s{{{label}}}"] = _latency_of(counter)
    return measures


def _latency_of(counter: str) -> Callable[[CounterGrowth], float | None]:
    mean = ratio_of(f"{counter}_s", counter)
    return lambda grown: mean(grown) if grown.count(counter) else None


def _parse(text: str) -> Values:
    """Returns counters for each object, and for each combination of process type and object. A key is, for example,
    `object=wal|write_bytes`."""
    values: Values = {}
    for row in rows(text):
        word = _OBJECTS.get(str(row["object"]), str(row["object"]))
        page = number(row, "op_bytes") or number(row, "page")
        for label in (f"object={word}", f"backend={row['backend_type']},object={word}"):
            for kind in _KINDS:
                count = number(row, f"{kind}s")
                # Byte counters exist since version 18. In earlier versions, every operation had the size `op_bytes`.
                size = number(row, f"{kind}_bytes") if f"{kind}_bytes" in row else count * page
                for key, value in (
                    (kind, count),
                    (f"{kind}_bytes", size),
                    (f"{kind}_s", number(row, f"{kind}_time") / 1e3),
                ):
                    values[f"{label}|{key}"] = values.get(f"{label}|{key}", 0.0) + value
    return values


OBSERVER = PgIo()
