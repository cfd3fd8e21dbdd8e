"""Cost of each statement on the server (pg_stat_statements). The cost is read at the start and the end of the measured
window.

The texts of the statements are not read in the window, because this would read the file with all texts. `insight.py`
reads the texts of the most expensive statements afterwards. A statement is counted when it ends. Without privileges, a
role does not see the ids of other roles' statements. These statements are counted together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ironbench.engines.postgres.observers.catalog import has_relation
from ironbench.engines.window_ends import WindowEnds, counters
from ironbench.host.tree import Tree
from ironbench.model.note import Note, note
from ironbench.model.observation import Observation, Sample, Source
from ironbench.model.observer import Samples
from ironbench.model.session import Session

EXTENSION = "pg_stat_statements"
SOURCE = "pg_statements.view"
INFO = "info"
COLUMNS = (
    *("calls", "time_ms", "rows", "hit", "read", "written", "temp", "log", "io_ms"),
    "page",
)
_RESET = 1
"""Index of the column with the time of the last reset in the row `INFO`."""
_STATE = f"""
    select exists (select from pg_settings where name = '{EXTENSION}.max'),
           (select quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace
             where e.extname = '{EXTENSION}'),
           exists (select from pg_available_extensions where name = '{EXTENSION}'),
           current_setting('server_version_num'), current_setting('track_io_timing')
"""


@dataclass(frozen=True, slots=True)
class StatementsAccess:
    """Whether the statistics of statements are readable, and why not."""

    loaded: bool
    """Whether the server has loaded the library. If it has not, pg_settings shows no settings of the library."""
    schema: str | None
    """Quoted schema of the extension in this database, or None if the extension has not been created in this
    database."""
    there: bool
    """Whether the extension is available on the server."""
    version: int
    io_timed: bool

    @property
    def view(self) -> str:
        return f"{self.schema}.{EXTENSION}"


def state(session: Session) -> StatementsAccess:
    loaded, schema, there, version, timed = session.query(_STATE)[0]
    return StatementsAccess(loaded == "t", schema, there == "t", int(version or 0), timed == "on")


def sql(known: StatementsAccess) -> str:
    io = "shared_blk_read_time + s.shared_blk_write_time"
    if known.version < 170000:
        io = "blk_read_time + s.blk_write_time"
    info = "null, null"
    if known.version >= 140000:
        info = (
            f"(select dealloc from {known.view}_info), (select extract(epoch from stats_reset) from {known.view}_info)"
        )
    return (
        "select coalesce(s.queryid::text, ''), sum(s.calls), sum(s.total_exec_time), sum(s.rows), "
        "sum(s.shared_blks_hit + s.local_blks_hit), sum(s.shared_blks_read + s.local_blks_read), "
        "sum(s.shared_blks_written + s.local_blks_written), sum(s.temp_blks_written), sum(s.wal_bytes), "
        f"sum(s.{io}), current_setting('block_size')::int "
        f"from {known.schema}.{EXTENSION}(false) s "
        "where s.dbid = (select oid from pg_database where datname = current_database()) group by 1 "
        f"union all select '{INFO}', {info}, extract(epoch from pg_postmaster_start_time()), "
        "null, null, null, null, null, null, null"
    )


class PgStatements:
    name = "pg_statements"
    doc = "Cost of each statement in PostgreSQL during the measured time (pg_stat_statements)"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        if not has_relation(session, "pg_extension"):
            return ()
        known = state(session)
        if not known.loaded or known.schema is None or not has_relation(session, known.view):
            return ()
        return (Source(SOURCE, "sql", " ".join(sql(known).split()), WindowEnds.PERIOD_S),)

    def parse(self, samples: Samples, window_s: float) -> Observation:
        counts = counted(samples, window_s)
        if counts is None:
            return Observation()
        calls = sum(one["calls"] for one in counts.by_id.values())
        return Observation({"engine_statements_per_s": calls / window_s})


@dataclass(frozen=True, slots=True)
class PgStatementCounters:
    by_id: Mapping[str, Mapping[str, float]]
    """For each query id, the growth of its counters over the window. The id "" stands for all statements that the role
    cannot see."""
    notes: tuple[Note, ...] = ()


def counted(samples: Mapping[str, Sequence[Sample]], window_s: float) -> PgStatementCounters | None:
    """Returns the growth of the counters. Returns None if they were not read at both ends of the window."""
    ends = WindowEnds.of(samples.get(SOURCE, ()), window_s)
    if ends is None:
        return None
    (first, before), (last, after) = _read(ends.first), _read(ends.last)
    grown: dict[str, Mapping[str, float]] = {}
    fell = False
    for id, now in after.items():
        then = before.get(id, {})
        began_anew = now["calls"] < then.get("calls", 0.0)
        fell = fell or began_anew
        if began_anew or last[_RESET] != first[_RESET]:
            then = {}
        change = {name: now[name] - then.get(name, 0.0) for name in COLUMNS if name != "page"}
        if change["calls"] > 0:
            grown[id] = {**change, "page": now["page"]}
    return PgStatementCounters(grown, tuple(_notes(first, last, fell)))


def _notes(first: Sequence[float], last: Sequence[float], fell: bool) -> Iterator[Note]:
    """Yields a note that the counters do not cover the whole window. If there are several reasons, yields only the one
    that makes the others irrelevant."""
    (evicted, reset, started), (evicted_then, reset_then, started_then) = last, first
    if started != started_then:
        yield note("statements-since-restart")
    elif reset != reset_then or fell:
        yield note("statements-since-reset", by=EXTENSION)
    elif evicted > evicted_then:
        yield note("statements-evicted", by=EXTENSION, setting=f"{EXTENSION}.max")


def _read(sample: Sample) -> tuple[list[float], dict[str, dict[str, float]]]:
    rows = {id: values for (id,), values in counters(sample, 1, len(COLUMNS)).items()}
    info = rows.pop(INFO, [0.0] * len(COLUMNS))[:3]
    return info, {id: dict(zip(COLUMNS, values, strict=True)) for id, values in rows.items()}


OBSERVER = PgStatements()
