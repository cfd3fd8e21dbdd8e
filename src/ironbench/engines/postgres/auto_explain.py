"""Plans of executed statements, read from the server's log. This works only if auto_explain writes plans to the log and
ironbench can read the log.

ironbench sends no queries during a trial for this. ironbench does not configure auto_explain, because only a superuser
can change its settings (PostgreSQL 18 documentation, F.3). The user decides whether auto_explain is loaded, because it
costs time.

The log can be read if the server runs on this machine and this process may read the server's log file. The logging
collector writes this file, or it is the standard error of the server.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ironbench.errors import IronbenchError
from ironbench.model.inside import ExecutedPlan, StatementPlan, bounded
from ironbench.model.session import Session

_MOST_BYTES = 16 << 20
_LONGEST_PLAN = 6000
_LOADED = """
    select max(setting) filter (where name = 'auto_explain.log_min_duration'),
           max(setting) filter (where name = 'auto_explain.log_format'),
           max(setting) filter (where name = 'data_directory')
      from pg_settings where name in ('auto_explain.log_min_duration', 'auto_explain.log_format', 'data_directory')
"""
"""Query for the settings of auto_explain. A value is null if the role may not see the setting."""
_ENTRY = re.compile(r"duration: (\d+\.?\d*) ms  plan:\n((?:\t.*(?:\n|$))+)")
NODE = re.compile(r"^\s*(?:->\s*)?(.*?)\s+\(cost=")
_PARAMETER = re.compile(r"\$\d+")


@dataclass(frozen=True, slots=True)
class PlanLog:
    file: Path
    start: int
    """Size of the file in bytes before the trial."""


def least_ms(session: Session) -> str | None:
    """Returns the minimum duration in milliseconds of statements whose plans auto_explain logs. Returns None if it logs
    no plans."""
    least = session.query(_LOADED)[0][0]
    return None if least in (None, "", "-1") else least


def log_position(session: Session) -> PlanLog | None:
    """Returns the current end of the log. Returns None if the log cannot be read, or if its plans are not in text
    format."""
    try:
        _, form, directory = session.query(_LOADED)[0]
        if form not in (None, "", "text"):
            return None
        file = _collected(session, directory or "") or _standard_error(session)
        return None if file is None else PlanLog(file, file.stat().st_size)
    except (IronbenchError, OSError):
        return None


def _collected(session: Session, directory: str) -> Path | None:
    # The role's privileges are checked first, so that no error is written to the server's log.
    if session.query("select has_function_privilege('pg_current_logfile(text)', 'execute')") != [("t",)]:
        return None
    name = session.query("select pg_current_logfile('stderr')")[0][0]
    file = Path(directory, name) if name else None
    return file if file is not None and file.is_absolute() and os.access(file, os.R_OK) else None


def _standard_error(session: Session) -> Path | None:
    processes = session.processes()
    if not processes:
        return None
    file = Path(f"/proc/{processes[0]}/fd/2").resolve()
    return file if file.is_file() and os.access(file, os.R_OK) else None


def executed(log: PlanLog, plans: Sequence[StatementPlan]) -> tuple[ExecutedPlan, ...]:
    """Returns the executions of the commands in `plans` that were logged since `begun`."""
    try:
        with log.file.open("rb") as file:
            file.seek(log.start)
            text = file.read(_MOST_BYTES).decode(errors="replace")
    except OSError:
        return ()
    shapes = [(plan, _shape(plan.statement)) for plan in plans]
    by_statement: dict[tuple[str, int], list[tuple[float, str]]] = {}
    for entry in _ENTRY.finditer(text):
        query, steps = _split(entry[2])
        plan = next((plan for plan, shape in shapes if shape.fullmatch(query)), None)
        if plan is not None:
            by_statement.setdefault((plan.script, plan.number), []).append((float(entry[1]) / 1e3, steps))
    return tuple(_of(plan, own) for plan in plans if (own := by_statement.get((plan.script, plan.number))))


def _of(plan: StatementPlan, logged: Sequence[tuple[float, str]]) -> ExecutedPlan:
    slowest_s, text = max(logged)
    steps = tuple(match[1] for line in text.splitlines() if (match := NODE.match(line)))
    return ExecutedPlan(
        plan.script, plan.number, plan.statement, float(len(logged)), slowest_s, text[:_LONGEST_PLAN], steps
    )


def _split(entry: str) -> tuple[str, str]:
    """Splits a log entry into the statement and the lines of its plan. The statement is on one line."""
    lines = [line.removeprefix("\t") for line in entry.splitlines()]
    first = next((at for at, line in enumerate(lines) if NODE.match(line)), len(lines))
    texts = [line for line in lines[:first] if not line.startswith("Query Parameters:")]
    return bounded("\n".join(texts).removeprefix("Query Text:")), "\n".join(lines[first:])


def _shape(statement: str) -> re.Pattern[str]:
    """Returns a pattern that matches the statement in the log. The log contains values in place of the statement's
    parameters, or the parameters of a prepared statement."""
    parts = _PARAMETER.split(statement.removesuffix("…"))
    return re.compile(".+?".join(map(re.escape, parts)) + (".*" if statement.endswith("…") else ""))
