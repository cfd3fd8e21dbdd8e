"""Cost of each statement on the server (performance_schema). The cost is read at the start and the end of the measured
window.

Statements that are sent as text are counted for each digest. Prepared statements are counted for each connection, and
the counters disappear when the connection closes (manual, "Performance Schema prepared_statements_instances Table"). At
the end of the window, the clients are still connected, so these counters can be read.

In MariaDB 10.11, the counters of prepared statements stay zero. Only the total of all executions of a connection is
known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ironbench.engines.administration import DENIED
from ironbench.engines.window_ends import WindowEnds, counters
from ironbench.errors import IronbenchError
from ironbench.host.tree import Tree
from ironbench.model.note import Note, note
from ironbench.model.observation import Observation, Sample, Source
from ironbench.model.observer import Samples
from ironbench.model.session import Session

DIGESTS, PREPARED = "maria_statements.digests", "maria_statements.prepared"
LOST, TOGETHER = "#lost", "#together"
COLUMNS = ("calls", "time_ps", "rows", "examined", "temp_tables")
LONGEST = 400
"""Maximum length of a prepared statement's text in characters."""
_DIGESTS = f"""
    select digest, count_star, sum_timer_wait, sum_rows_sent + sum_rows_affected, sum_rows_examined,
           sum_created_tmp_disk_tables
      from performance_schema.events_statements_summary_by_digest
     where schema_name = database() and digest is not null
    union all
    select '{LOST}', variable_value, 0, 0, 0, 0 from performance_schema.global_status
     where variable_name = 'Performance_schema_digest_lost'
"""
_PREPARED = f"""
    select left(p.sql_text, {LONGEST}), sum(count_execute), sum(sum_timer_execute),
           sum(sum_rows_sent + sum_rows_affected), sum(sum_rows_examined), sum(sum_created_tmp_disk_tables)
      from performance_schema.prepared_statements_instances p
      join performance_schema.threads t on t.thread_id = p.owner_thread_id
     where t.processlist_db = database() and p.count_execute > 0 group by 1
    union all
    select '{TOGETHER}', sum(count_star), sum(sum_timer_wait), sum(sum_rows_sent + sum_rows_affected),
           sum(sum_rows_examined), sum(sum_created_tmp_disk_tables)
      from performance_schema.events_statements_summary_by_thread_by_event_name e
      join performance_schema.threads t on t.thread_id = e.thread_id
     where t.processlist_db = database() and e.event_name = 'statement/com/Execute'
"""
ON = "select @@performance_schema"
_CONSUMER = "select enabled from performance_schema.setup_consumers where name = 'statements_digest'"
Seen = Literal["yes", "off", "denied", "not counted", "unknown"]


def seen(session: Session) -> Seen:
    """Returns `yes` if the server counts the cost of statements. Otherwise, returns why it does not."""
    try:
        if session.query(ON) != [("1",)]:
            return "off"
        session.query(sql(DIGESTS))
        session.query(sql(PREPARED))
        return "yes" if session.query(_CONSUMER) in ([("YES",)], []) else "not counted"
    except IronbenchError as error:
        return "denied" if error.sqlstate == DENIED else "unknown"


def sql(source: str) -> str:
    return " ".join((_DIGESTS if source == DIGESTS else _PREPARED).split())


class MariaStatements:
    name = "maria_statements"
    doc = "Cost of each statement in MariaDB during the measured time (performance_schema)"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        if seen(session) != "yes":
            return ()
        return tuple(Source(name, "sql", sql(name), WindowEnds.PERIOD_S) for name in (DIGESTS, PREPARED))

    def parse(self, samples: Samples, window_s: float) -> Observation:
        counts = counted(samples, window_s)
        if counts is None:
            return Observation()
        calls = sum(one["calls"] for of in (counts.by_digest, counts.prepared) for one in of.values())
        return Observation({"engine_statements_per_s": calls / window_s})


Grown = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class DigestCounters:
    by_digest: Grown
    """For each digest of a statement, the growth of its counters over the window."""
    prepared: Grown
    """For each text of a prepared statement, the growth of its counters over the window. The key `TOGETHER` is used for
    all statements together if the server does not count them individually."""
    notes: tuple[Note, ...] = ()


def counted(samples: Mapping[str, Sequence[Sample]], window_s: float) -> DigestCounters | None:
    """Returns the growth of the counters. Returns None if they were not read at both ends of the window."""
    digests, prepared = (WindowEnds.of(samples.get(name, ()), window_s) for name in (DIGESTS, PREPARED))
    if digests is None or prepared is None:
        return None
    first, last = _read(digests.first), _read(digests.last)
    lost = last.pop(LOST, {}).get("calls", 0.0) - first.pop(LOST, {}).get("calls", 0.0)
    notes = []
    if any(now["calls"] < first.get(id, now)["calls"] for id, now in last.items()) or first.keys() - last.keys():
        notes.append(note("statements-since-reset", by="performance_schema"))
    if lost > 0:
        setting = "performance_schema_digests_size"
        notes.append(note("statements-not-counted", count=lost, by="performance_schema", setting=setting))
    each = dict(_grown(_read(prepared.first), _read(prepared.last)))
    together = each.pop(TOGETHER, None)
    return DigestCounters(_grown(first, last), each or ({TOGETHER: together} if together else {}), tuple(notes))


def _grown(first: Grown, last: Grown) -> Grown:
    grown = {}
    for id, now in last.items():
        then = first.get(id, {})
        if now["calls"] < then.get("calls", 0.0):
            then = {}
        change = {name: now[name] - then.get(name, 0.0) for name in COLUMNS}
        if change["calls"] > 0:
            grown[id] = change
    return grown


def _read(sample: Sample) -> dict[str, Mapping[str, float]]:
    rows = counters(sample, 1, len(COLUMNS))
    return {id: dict(zip(COLUMNS, values, strict=True)) for (id,), values in rows.items()}


OBSERVER = MariaStatements()
