"""PostgreSQL's own statistics of a trial: the most expensive statements, tables, indexes, vacuums, and plans."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

from ironbench.engines.administration import REQUEST, Insight
from ironbench.engines.own_databases import is_ours
from ironbench.engines.postgres import auto_explain
from ironbench.engines.postgres.auto_explain import NODE, PlanLog
from ironbench.engines.postgres.observers import relations, statements
from ironbench.engines.postgres.observers.catalog import has_relation
from ironbench.engines.postgres.observers.statements import EXTENSION, StatementsAccess
from ironbench.errors import IronbenchError
from ironbench.model.inside import (
    LONGEST,
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

MOST_COMMANDS = 40
_EXPLAINABLE = re.compile(r"\s*(select|insert|update|delete|merge|with|values|table)\b", re.IGNORECASE)
_EXPLAIN = "set transaction read only; set local statement_timeout = '5s'; explain ({how}) {sql}"
_LONGEST_PLAN = 6000
_OURS = re.compile(r"ironbench_observer_|pg_stat_force_next_flush|^\s*set transaction read only", re.IGNORECASE)
_REQUESTED = re.compile(r"\s*(?:checkpoint|set local statement_timeout = (?:0|\$1))\s*;?\s*", re.IGNORECASE)
"""Pattern of the statements with which ironbench requests checkpoints in a trial."""
_TOP = 8
"""Number of statements that are kept in each sort order. The orders are by time, by calls, by blocks read, and by
WAL."""
_SINCE_GENERIC = 160000

NOT_HERE = (
    "install the server's contrib modules (Debian: part of postgresql-NN); the built-in PostgreSQL has none, so use "
    "another PostgreSQL with `--set bin=/usr/lib/postgresql/NN/bin`"
)
PRELOAD = f"add {EXTENSION} to shared_preload_libraries, and restart the server; then CREATE EXTENSION {EXTENSION}"


COPIED = (
    f"as a superuser, run CREATE EXTENSION {EXTENSION} in the database that trials copy (the template; for a dump, the "
    "last lines of the run contain its name)"
)


def lacking(known: StatementsAccess, readable: bool = True, copied: bool = False) -> NotShown | None:
    """Returns why the costs of statements are not available, and how to change this. Returns None if they are
    available. `copied`: whether the database is dropped after the trial."""
    what = "Cost of each statement"
    if not known.there and not known.loaded:
        return NotShown(what, f"the extension {EXTENSION} is not installed", NOT_HERE)
    if not known.loaded:
        return NotShown(what, f"the server has not loaded {EXTENSION}", PRELOAD)
    if known.schema is None:
        remedy = COPIED if copied else f"as a superuser, run CREATE EXTENSION {EXTENSION} in this database"
        return NotShown(what, f"{EXTENSION} is loaded, but not created in this database", remedy)
    if not readable:
        return NotShown(what, f"the role lacks SELECT on {known.view}", f"GRANT SELECT ON {known.view} TO …")
    return None


class PostgresInsight(Insight):
    def __init__(self) -> None:
        self._logs: WeakKeyDictionary[Session, PlanLog] = WeakKeyDictionary()
        """For each session, the state of the server's log before the trial."""

    def begin(self, session: Session, commands: Sequence[ScriptCommand], own: bool) -> ServerStatistics:
        known = statements.state(session)
        if own and known.loaded and known.schema is None and known.there:
            session.query(f"create extension if not exists {EXTENSION}")
            known = statements.state(session)
        if (least := auto_explain.least_ms(session)) is not None and (
            log := auto_explain.log_position(session)
        ) is not None:
            self._logs[session] = log
        copied = is_ours(session.target()["connection"]["database"])
        missing = (
            lacking(known, known.schema is None or has_relation(session, known.view), copied),
            _unread(least) if session not in self._logs else None,
        )
        return ServerStatistics(
            plans=tuple(
                _plan(session, one, known.version) for one in commands[:MOST_COMMANDS] if _EXPLAINABLE.match(one.text)
            ),
            missing=tuple(filter(None, missing)),
        )

    def end(
        self, session: Session, begun: ServerStatistics, samples: Mapping[str, Sequence[Sample]], window_s: float
    ) -> ServerStatistics:
        seen = replace(
            begun,
            tables=relations.tables(samples, window_s),
            indexes=relations.indexes(samples, window_s),
            vacuums=relations.vacuums(samples, window_s),
        )
        if (log := self._logs.pop(session, None)) is not None:
            done = auto_explain.executed(log, begun.plans)
            lacks = () if done else tuple(filter(None, [_none_slow(auto_explain.least_ms(session))]))
            seen = replace(seen, executed=done, missing=(*seen.missing, *lacks))
        counts = statements.counted(samples, window_s)
        if counts is None:
            if statements.SOURCE not in samples:
                return seen
            why = NotShown("Cost of each statement", "the counters were not read at both ends of the trial")
            return replace(seen, missing=(*seen.missing, why))
        texts, version = _texts(session, _top(counts.by_id), REQUEST in samples), statements.state(session)
        shown = [_statement(text, counts.by_id[id], version.io_timed) for id, text in texts.items() if text]
        ours = sum(counts.by_id[id]["time_ms"] for id, text in texts.items() if not text)
        whole_ms = sum(one["time_ms"] for one in counts.by_id.values()) - ours
        return replace(
            seen,
            statements=tuple(sorted(shown, key=lambda one: -one.time_s)),
            statements_s=whole_ms / 1e3,
            notes=(*seen.notes, *counts.notes),
        )


_EXECUTED = "Executed plans"


def _unread(least_ms: str | None) -> NotShown | None:
    """Returns a note that plans are logged but ironbench cannot read the log. Returns None if auto_explain logs no
    plans. `least_ms`: minimum duration of logged statements."""
    if least_ms is None:
        return None
    why = f"auto_explain logs plans of statements from {least_ms} ms, but ironbench cannot read the server's log"
    return NotShown(
        _EXECUTED, why, "run ironbench on the server's machine as a user who can read its log, or read the log yourself"
    )


def _none_slow(least_ms: str | None) -> NotShown | None:
    if least_ms is None:
        return None
    why = f"no command of the scripts took {least_ms} ms, or auto_explain sampled none"
    return NotShown(_EXECUTED, why, "lower auto_explain.log_min_duration")


def _plan(session: Session, command: ScriptCommand, version: int) -> StatementPlan:
    """Explains a command without executing it, in a read-only transaction with a timeout."""
    plan = StatementPlan(command.script, command.number, bounded(command.text))
    generic = not command.typical
    if generic and version < _SINCE_GENERIC:
        return replace(plan, failed=f"{without_values(command)}; EXPLAIN without values requires PostgreSQL 16")
    how = "settings, generic_plan" if generic else "settings"
    sql = (command.text if generic else command.typical).strip().rstrip(";")
    if ";" in re.sub(r"'(?:[^']|'')*'", "", sql):
        return replace(plan, failed="the command contains several statements")
    try:
        rows = session.query(_EXPLAIN.format(how=how, sql=sql))
    except IronbenchError as error:
        if not generic and version >= _SINCE_GENERIC and command.text != command.typical:
            # If a program sets a variable before each transaction, the variable has no typical value. Its default 0 may
            # have the wrong type, for example for a date. A generic plan uses the type that the server expects.
            general = _plan(session, replace(command, typical=""), version)
            return replace(plan, failed=error.cause) if general.failed else general
        return replace(plan, failed=error.cause)
    lines = [row[0] or "" for row in rows]
    steps = tuple(match[1] for line in lines if (match := NODE.match(line)))
    return replace(plan, text="\n".join(lines)[:_LONGEST_PLAN], steps=steps, generic=generic)


def _top(by_id: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Returns the most expensive statements in each sort order. Statements that the role cannot see are omitted."""
    chosen: dict[str, None] = {}
    seen = [id for id in by_id if id]
    for name in ("time_ms", "calls", "read", "log", "temp"):
        # Twice as many as are shown are chosen, because up to half of them may be statements of observers.
        leading = sorted(seen, key=lambda id: -by_id[id][name])[: 2 * _TOP]
        chosen |= dict.fromkeys(id for id in leading if by_id[id][name] > 0)
    return list(chosen)


def _texts(session: Session, ids: Sequence[str], requested: bool) -> dict[str, str]:
    """Returns the text of each statement without values, on one line. The text is "" for ironbench's own statements,
    including requested checkpoints."""
    known = statements.state(session)
    if known.schema is None or not ids:
        return {}
    wanted = ", ".join(str(int(id)) for id in ids)
    rows = session.query(
        f"select queryid, min(left(query, {8 * LONGEST})) from {known.view} where queryid in ({wanted}) group by 1"
    )
    texts = dict.fromkeys(ids, "(text no longer available)")
    return texts | {str(id): "" if _is_ours(text or "", requested) else bounded(text or "") for id, text in rows}


def _is_ours(text: str, requested: bool) -> bool:
    return bool(_OURS.search(text) or (requested and _REQUESTED.fullmatch(text)))


def _statement(text: str, grown: Mapping[str, float], io_timed: bool) -> ServerStatement:
    page = grown["page"]
    return ServerStatement(
        text,
        calls=grown["calls"],
        time_s=grown["time_ms"] / 1e3,
        rows=grown["rows"],
        hit_bytes=grown["hit"] * page,
        read_bytes=grown["read"] * page,
        written_bytes=grown["written"] * page,
        temp_bytes=grown["temp"] * page,
        log_bytes=grown["log"],
        io_s=grown["io_ms"] / 1e3 if io_timed else None,
    )
