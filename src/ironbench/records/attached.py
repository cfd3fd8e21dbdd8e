"""Additional files of a record: results of its workers, the times of SQL commands, and the server's own statistics.

Readers validate everything, because a file may come from an import.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from ironbench.model.inside import ServerStatistics
from ironbench.model.note import text_note
from ironbench.model.record import Statement
from ironbench.model.redact import redacted_sql
from ironbench.model.workers import WorkerPart

WORKERS, TIMED, INSIDE = "workers.json", "statements.json", "inside.json"
_MOST_WORKERS, _LONGEST_HOST = 10_000, 1_000
_MOST_STATEMENTS, _LONGEST_SQL = 10_000, 100_000
_MOST_LISTED, _LONGEST_LISTED = 500, 10_000
"""Maximum number of entries in each list of server statistics, and maximum number of characters of a text in such a
list."""


_FORMER = {
    "(its text was evicted)": "(text no longer available)",
    "(its text is gone)": "(text no longer available)",
    "(all statements that clients prepared)": "(all prepared statements)",
}
"""Placeholders for missing texts of statements. Each placeholder of an earlier version is mapped to the placeholder of
this version. Statements of two systems are matched by their text, so both systems must have the same placeholders."""


class _FormerInside(msgspec.Struct):
    """Server statistics in the format of earlier versions, which wrote sentences instead of notes."""

    doubts: tuple[str, ...] = ()


def written_workers(workers: Sequence[WorkerPart], machines: Mapping[int, str]) -> bytes:
    """Encodes the results of the workers. `machines` maps the number of each worker, counted from 0, to the content key
    of its machine's fingerprint."""
    rows = [replace(one, machine=machines.get(one.number - 1, "")) for one in workers]
    return msgspec.json.format(msgspec.json.encode(rows), indent=1)


def read_workers(data: bytes) -> tuple[WorkerPart, ...]:
    """Decodes and validates the results of workers. Raises ValueError or msgspec.MsgspecError."""
    workers = msgspec.json.decode(data, type=tuple[WorkerPart, ...])
    if len(workers) > _MOST_WORKERS or any(len(one.host) > _LONGEST_HOST for one in workers):
        raise ValueError(
            f"contains more than {_MOST_WORKERS} workers, or a name of more than {_LONGEST_HOST} characters"
        )
    if not all(math.isfinite(one.elapsed_s + one.start_s + one.threads_cpu_share) for one in workers):
        raise ValueError("has a time that is not a number")
    return workers


def written_timed(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Encodes the times of all SQL commands of scripts (from `measures.timed`). Passwords are removed from the
    commands, and long commands are shortened to the length that readers accept."""
    clean = [{**row, "text": redacted_sql(row["text"])[:_LONGEST_SQL]} for row in rows]
    return msgspec.json.format(msgspec.json.encode(clean), indent=1)


def read_timed(data: bytes) -> tuple[Statement, ...]:
    """Decodes and validates the times of SQL commands. Raises ValueError or msgspec.MsgspecError."""
    statements = msgspec.json.decode(data, type=tuple[Statement, ...])
    if len(statements) > _MOST_STATEMENTS or any(
        len(one.text) > _LONGEST_SQL or len(one.script) > _LONGEST_SQL for one in statements
    ):
        raise ValueError(
            f"contains more than {_MOST_STATEMENTS} statements, or a text of more than {_LONGEST_SQL} characters"
        )
    for one in statements:
        if one.count < 0 or one.failed < 0 or not math.isfinite(one.mean_s + one.stdev_s) or one.mean_s < 0:
            raise ValueError(f"has impossible times for {one.script}, line {one.line}")
        if any(time is not None and not 0 <= time < math.inf for time in (one.p50_s, one.p95_s, one.p99_s)):
            raise ValueError(f"has impossible percentiles for {one.script}, line {one.line}")
    return statements


def written_inside(inside: ServerStatistics) -> bytes:
    """Encodes the server's statistics. Passwords are removed, because servers remove literal values from most
    statements, but not from all."""
    clean = replace(
        inside,
        statements=tuple(replace(one, text=redacted_sql(one.text)) for one in inside.statements),
        plans=tuple(
            replace(
                one,
                statement=redacted_sql(one.statement),
                text=redacted_sql(one.text),
                failed=redacted_sql(one.failed),
            )
            for one in inside.plans
        ),
        executed=tuple(
            replace(one, statement=redacted_sql(one.statement), text=redacted_sql(one.text)) for one in inside.executed
        ),
    )
    return msgspec.json.format(msgspec.json.encode(clean), indent=1)


def read_inside(data: bytes) -> ServerStatistics:
    """Decodes and validates the server's statistics. Raises ValueError or msgspec.MsgspecError."""
    inside = msgspec.json.decode(data, type=ServerStatistics)
    if former := msgspec.json.decode(data, type=_FormerInside).doubts:
        inside = replace(inside, notes=tuple(map(text_note, former)))
    if any(one.text in _FORMER for one in inside.statements):
        named = (replace(one, text=_FORMER.get(one.text, one.text)) for one in inside.statements)
        inside = replace(inside, statements=tuple(named))
    lists: tuple[Sequence[object], ...] = (
        inside.statements,
        inside.tables,
        inside.indexes,
        inside.plans,
        inside.missing,
    )
    if any(len(one) > _MOST_LISTED for one in (*lists, inside.vacuums, inside.notes, inside.executed)):
        raise ValueError(f"contains a list of more than {_MOST_LISTED} entries")
    texts = [one.text for one in inside.statements] + [one.text for one in inside.plans]
    texts += [one.text for one in inside.executed]
    if any(len(text) > _LONGEST_LISTED for text in texts):
        raise ValueError(f"contains a text of more than {_LONGEST_LISTED} characters")
    return inside
