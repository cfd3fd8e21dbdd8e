"""Summarises a capture: mix, sessions, rates over time, think times, statements, and statements that cannot be
replayed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb

from ironbench import engines
from ironbench.workloads.capture import file, keys
from ironbench.workloads.capture.file import CaptureFacts
from ironbench.workloads.capture.keys import KeyUse

_INTERVALS = 24
"""Maximum number of intervals for rates over time."""
_WIDTHS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400, 604800)
_TOP = 20
_FEW = 10


@dataclass(frozen=True, slots=True)
class StatementUse:
    template: str
    calls: int
    share: float
    total_s: float
    mean_s: float | None
    p99_s: float | None
    failed: int
    writes: bool


@dataclass(frozen=True, slots=True)
class Interval:
    start_s: float
    """Start of the interval in seconds since the start of the capture."""
    transactions_per_s: float
    statements_per_s: float
    sessions: int
    """Number of sessions that sent a statement in the interval."""
    mean_s: float | None
    """Mean duration of a statement in seconds."""


@dataclass(frozen=True, slots=True)
class Pauses:
    """Times between the end of a statement and the next statement of the same session."""

    count: int
    mean_s: float
    p50_s: float
    p90_s: float
    p99_s: float


@dataclass(frozen=True, slots=True)
class Sender:
    kind: str
    """Kind of the name: `user`, `database` or `application`."""
    name: str
    statements: int
    sessions: int


@dataclass(frozen=True, slots=True)
class Contents:
    facts: CaptureFacts
    at_once: int
    """Maximum number of sessions that were open at the same time."""
    mix: tuple[tuple[str, int], ...]
    """First keywords of statements, with the number of statements that begin with each."""
    reads: int
    writes: int
    failed: int
    busy_s: float
    """Total duration of all statements in seconds."""
    peak_per_s: float
    """Maximum number of transactions that started in one second."""
    width_s: float
    intervals: tuple[Interval, ...]
    inside: Pauses | None
    """Pauses inside transactions. The value is None if durations are unknown, or if there are no such pauses."""
    between: Pauses | None
    """Pauses between transactions."""
    top: tuple[StatementUse, ...]
    templates: int
    senders: tuple[Sender, ...]
    left_out: tuple[tuple[str, int], ...]
    """Reasons why a replay leaves out statements, with the number of statements for each reason."""
    keys: KeyUse


def contents(path: str) -> Contents:
    """Reads a capture and summarises it. Raises InputError if the file is not a capture."""
    facts = file.facts(path)
    with file.reading(path) as opened:
        opened.execute(f"CREATE VIEW capture AS SELECT *, epoch_us(started_at) AS at_us FROM {file.source(path)}")
        opened.execute("CREATE VIEW chosen AS SELECT * FROM capture WHERE left_out IS NULL")
        return _contents(opened, facts)


def _contents(opened: duckdb.DuckDBPyConnection, facts: CaptureFacts) -> Contents:
    width_s = next((one for one in _WIDTHS_S if facts.length_s <= one * _INTERVALS), _WIDTHS_S[-1])
    ((reads, writes, failed, busy_us, templates),) = file.asked(
        opened,
        "SELECT count(*) FILTER (NOT writes AND command IN ('select', 'with', 'values', 'table', 'fetch', 'show')), "
        "count(*) FILTER (writes), count(error), coalesce(sum(duration_us), 0), count(DISTINCT template) FROM capture",
    )
    opened.execute(
        f"CREATE TABLE starts AS SELECT min(at_us) - {facts.began_us} AS after_us FROM capture GROUP BY transaction"
    )
    ((peak,),) = file.asked(
        opened, "SELECT max(started) FROM (SELECT count(*) AS started FROM starts GROUP BY after_us // 1000000)"
    )
    mix = file.asked(opened, "SELECT command, count(*) FROM capture GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ?", [_FEW])
    left_out = file.asked(
        opened, "SELECT left_out, count(*) FROM capture WHERE left_out IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1"
    )
    return Contents(
        facts=facts,
        at_once=_at_once(opened),
        mix=tuple(mix),
        reads=reads,
        writes=writes,
        failed=failed,
        busy_s=float(busy_us) / 1e6,
        peak_per_s=float(peak),
        width_s=width_s,
        intervals=tuple(_intervals(opened, facts, width_s)),
        inside=_pauses(opened, facts, "transaction = before"),
        between=_pauses(opened, facts, "transaction <> before"),
        top=tuple(_top(opened, facts)),
        templates=templates,
        senders=tuple(_senders(opened)),
        left_out=tuple(left_out),
        keys=keys.infer(opened, engines.capturing(facts.protocol).generates, facts.masked)
        if facts.replayable
        else KeyUse(0, 0, 0),
    )


def _at_once(opened: duckdb.DuckDBPyConnection) -> int:
    ((most,),) = file.asked(
        opened,
        """
        WITH spans AS (
            SELECT session, min(at_us) AS began, max(at_us + coalesce(duration_us, 0)) AS ended FROM capture GROUP BY 1
        ), steps AS (
            SELECT began AS moment, 1 AS step FROM spans UNION ALL SELECT ended + 1, -1 FROM spans
        )
        SELECT max(open) FROM (SELECT sum(step) OVER (ORDER BY moment, step) AS open FROM steps)
        """,
    )
    return int(most)


def _intervals(opened: duckdb.DuckDBPyConnection, facts: CaptureFacts, width_s: float) -> list[Interval]:
    width_us = int(width_s * 1e6)
    rows = file.asked(
        opened,
        "SELECT number, coalesce(started, 0), statements, sessions, mean_us FROM "
        f"(SELECT (at_us - {facts.began_us}) // {width_us} AS number, count(*) AS statements, "
        "count(DISTINCT session) AS sessions, avg(duration_us) AS mean_us FROM capture GROUP BY 1) LEFT JOIN "
        f"(SELECT after_us // {width_us} AS number, count(*) AS started FROM starts GROUP BY 1) USING (number) "
        "ORDER BY number",
    )
    by_number = {int(number): rest for number, *rest in rows}
    found = []
    last = max(by_number)
    if last and facts.length_s - last * width_s < width_s / 2:  # a rate in such a short time means little
        last -= 1
    for number in range(last + 1):
        transactions, statements, sessions, mean_us = by_number.get(number, (0, 0, 0, None))
        # The last interval may be shorter than the others.
        lasts_s = min(width_s, facts.length_s - number * width_s) if facts.length_s > number * width_s else width_s
        mean_s = None if mean_us is None else mean_us / 1e6
        found.append(Interval(number * width_s, transactions / lasts_s, statements / lasts_s, sessions, mean_s))
    return found


def _pauses(opened: duckdb.DuckDBPyConnection, facts: CaptureFacts, condition: str) -> Pauses | None:
    if not facts.has_durations:
        return None
    ((count, *values),) = file.asked(
        opened,
        f"""
        SELECT count(*), avg(pause), quantile_cont(pause, 0.5), quantile_cont(pause, 0.9), quantile_cont(pause, 0.99)
        FROM (
            SELECT transaction, lag(transaction) OVER sessions AS before,
                greatest(0, at_us - lag(at_us + coalesce(duration_us, 0)) OVER sessions) / 1e6 AS pause
            FROM capture WINDOW sessions AS (PARTITION BY session ORDER BY number)
        ) WHERE before IS NOT NULL AND {condition}
        """,
    )
    return Pauses(count, *values) if count else None


def _top(opened: duckdb.DuckDBPyConnection, facts: CaptureFacts) -> list[StatementUse]:
    """Returns the statements that took the most time. If the capture has no durations, returns the most frequent
    statements."""
    rows = file.asked(
        opened,
        "SELECT template, count(*), coalesce(sum(duration_us), 0), avg(duration_us), quantile_cont(duration_us, 0.99), "
        "count(error), bool_or(writes) FROM capture GROUP BY 1 ORDER BY 3 DESC, 2 DESC, 1 LIMIT ?",
        [_TOP],
    )

    def seconds(micros: Any) -> float | None:
        return None if micros is None else float(micros) / 1e6

    return [
        StatementUse(
            template=template,
            calls=calls,
            share=calls / facts.statements,
            total_s=float(total_us) / 1e6,
            mean_s=seconds(mean_us),
            p99_s=seconds(p99_us),
            failed=failed,
            writes=writes,
        )
        for template, calls, total_us, mean_us, p99_us, failed, writes in rows
    ]


def _senders(opened: duckdb.DuckDBPyConnection) -> list[Sender]:
    found = []
    for kind in ("user", "database", "application"):
        rows = file.asked(
            opened,
            f"SELECT {kind}_name, count(*), count(DISTINCT session) FROM capture GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ?",
            [_FEW],
        )
        found += [Sender(kind, name, statements, sessions) for name, statements, sessions in rows]
    return found
