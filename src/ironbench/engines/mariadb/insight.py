"""MariaDB's own statistics of a trial: the most expensive statements, use of tables and indexes, and plans."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ironbench.engines.administration import Insight
from ironbench.engines.mariadb.dialect import MariadbDialect
from ironbench.engines.mariadb.observers import relations, statements
from ironbench.engines.mariadb.observers.statements import TOGETHER
from ironbench.engines.mariadb.session import MariadbSession
from ironbench.errors import IronbenchError, written
from ironbench.model.inside import (
    NotShown,
    ScriptCommand,
    ServerStatement,
    ServerStatistics,
    StatementPlan,
    bounded,
    without_values,
)
from ironbench.model.observation import Sample
from ironbench.model.session import Session

if TYPE_CHECKING:
    from ironbench._core import MysqlConnection

_MOST_COMMANDS = 40
_EXPLAINABLE = re.compile(r"\s*(select|insert|update|delete|replace|with|values)\b", re.IGNORECASE)
_LONGEST_PLAN = 6000
_TOP = 8
"""Number of statements that are kept in each sort order. The orders are by time, by calls, and by rows examined."""
_OURS = re.compile(
    r"^kill query \?|`?performance_schema`?\s*\.|innodb_metrics|`?processlist`? where `?db`? = database|"
    r"`?information_schema`? \. `?(?:tables|processlist|global_status|innodb_metrics|index_statistics)`?",
    re.IGNORECASE,
)
"""Pattern of ironbench's own statements: the statements of observers, and those that cancel running statements
at the end of a trial."""
_ALL = "(all prepared statements)"
_PS = 1e-12
_STATEMENTS = "Cost of each statement"
_ON = "set performance_schema = ON in the option file and restart the server; on a server started by ironbench: "
_OWN = "--set performance_schema=ON"
_COSTS = "Counting adds a few microseconds to every statement."
_TEXTS = """
    select digest, left(digest_text, 4000) from performance_schema.events_statements_summary_by_digest
     where schema_name = database() and digest in ({ids})
"""
_WHY: Mapping[statements.Seen, tuple[str, str]] = {
    "off": ("performance_schema is off (the default)", f"{_ON}{_OWN}. {_COSTS}"),
    "denied": ("the user lacks SELECT on performance_schema", "GRANT SELECT ON performance_schema.* TO …"),
    "not counted": (
        "performance_schema does not count statements",
        "UPDATE performance_schema.setup_consumers SET enabled = 'YES' WHERE name = 'statements_digest'",
    ),
    "unknown": ("this version's performance_schema lacks the required tables", "use MariaDB 10.5 or later"),
}


class MariadbInsight(Insight):
    def begin(self, session: Session, commands: Sequence[ScriptCommand], own: bool) -> ServerStatistics:
        missing = []
        if (known := statements.seen(session)) != "yes":
            missing.append(NotShown(_STATEMENTS, *_WHY[known]))
        if not relations.seen(session):
            remedy = f"SET GLOBAL userstat = ON to count rows; to measure times as well, {_ON}{_OWN}"
            if known == "denied":
                remedy = _WHY["denied"][1]
            missing.append(
                NotShown("Use of tables and indexes", "performance_schema and userstat are not available", remedy)
            )
        return ServerStatistics(plans=tuple(_plans(session, commands)), missing=tuple(missing))

    def end(
        self, session: Session, begun: ServerStatistics, samples: Mapping[str, Sequence[Sample]], window_s: float
    ) -> ServerStatistics:
        tables, indexes = relations.used(samples, window_s)
        seen = replace(begun, tables=tables, indexes=indexes)
        counts = statements.counted(samples, window_s)
        if counts is None:
            if statements.DIGESTS not in samples:
                return seen
            why = NotShown(_STATEMENTS, "the counters were not read at both ends of the trial")
            return replace(seen, missing=(*seen.missing, why))
        texts = _texts(session, counts.by_digest)
        all_of = [(texts.get(id, ""), grown) for id, grown in counts.by_digest.items()]
        all_of += [(_ALL if text == TOGETHER else bounded(text), grown) for text, grown in counts.prepared.items()]
        if TOGETHER in counts.prepared:
            reason = "this server reports only one total for all prepared statements together"
            remedy = f"use {written('load.protocol', 'simple')}, or {written('load.report_per_statement')}"
            lacking = NotShown(_STATEMENTS, reason, f"{remedy} to time each statement at the client")
            seen = replace(seen, missing=(*seen.missing, lacking))
        theirs = [(text or "(text no longer available)", grown) for text, grown in all_of if not _OURS.search(text)]
        shown: dict[int, None] = {}
        for name in ("time_ps", "calls", "examined"):
            leading = sorted(range(len(theirs)), key=lambda at: -theirs[at][1][name])[:_TOP]
            shown |= dict.fromkeys(at for at in leading if theirs[at][1][name] > 0)
        return replace(
            seen,
            statements=tuple(sorted((_statement(*theirs[at]) for at in shown), key=lambda one: -one.time_s)),
            statements_s=sum(grown["time_ps"] for _, grown in theirs) * _PS,
            notes=(*seen.notes, *counts.notes),
        )


def _texts(session: Session, by_digest: Mapping[str, object]) -> dict[str, str]:
    known: dict[str, str] = {}
    ids = [id for id in by_digest if re.fullmatch(r"[0-9a-f]+", id)]
    for at in range(0, len(ids), 500):
        listed = ", ".join(f"'{id}'" for id in ids[at : at + 500])
        rows = session.query(_TEXTS.format(ids=listed))
        known |= {str(id): bounded(text or "") for id, text in rows}
    return known


def _statement(text: str, grown: Mapping[str, float]) -> ServerStatement:
    return ServerStatement(
        text,
        calls=grown["calls"],
        time_s=grown["time_ps"] * _PS,
        rows=grown["rows"],
        examined=grown["examined"],
        temp_tables=grown["temp_tables"],
    )


def _plans(session: Session, commands: Sequence[ScriptCommand]) -> list[StatementPlan]:
    wanted = [one for one in commands[:_MOST_COMMANDS] if _EXPLAINABLE.match(one.text)]
    if not wanted or not isinstance(session, MariadbSession):
        return []
    connection = session.as_client()
    try:
        for limit in ("max_statement_time = 5", "max_execution_time = 5000"):
            # Only one of the two settings exists: the first in MariaDB, the second in MySQL.
            with contextlib.suppress(IronbenchError):
                connection.query(f"set session {limit}")
        return [_plan(connection, one) for one in wanted]
    finally:
        connection.close()


def _plan(connection: MysqlConnection, command: ScriptCommand) -> StatementPlan:
    """Explains a command without executing it."""
    plan = StatementPlan(command.script, command.number, bounded(command.text))
    if not command.typical:
        return replace(plan, failed=f"{without_values(command)}; MariaDB cannot plan it without values")
    sql = command.typical.strip().rstrip(";")
    if ";" in re.sub(r"'(?:[^'\\]|''|\\.)*'", "", sql):
        return replace(plan, failed="the command contains several statements")
    try:
        rows = connection.query(f"explain format=json {sql}")
    except IronbenchError as error:
        return replace(plan, failed=error.cause)
    text = "".join(row[0] or "" for row in rows)
    return replace(plan, text=text[:_LONGEST_PLAN], steps=tuple(MariadbDialect().steps(text)))
