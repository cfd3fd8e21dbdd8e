"""Makes a capture from a running server's statistics of statements. This is useful if logs must not leave the server.
From the statistics, the capture has the statements, their number of calls, their durations and their numbers of rows.
Everything else is invented. Each call is a separate transaction. Calls are distributed at random over time and
sessions. Values of parameters are drawn from the statistics of the columns."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import msgspec

from ironbench import engines
from ironbench.engines.base import Traits
from ironbench.errors import FailureError, InputError
from ironbench.host import durable
from ironbench.model.digest import Digests, StatementDigest
from ironbench.model.note import Note, note
from ironbench.model.system import System
from ironbench.words import counted
from ironbench.workloads.capture import making, marks
from ironbench.workloads.capture.file import SCHEMA, CaptureFacts, asked, quoted

Show = Callable[[float, str], None]

_MOST_CALLS = 20_000_000
_WRITES = re.compile(r"\b(?:insert|update|delete|merge|replace)\b(?!\s*\()")
_POLLS_PER_S = 4


def capture(
    dsn: str, output: str, seconds: float, mask: bool = False, show: Show = lambda share, text: None
) -> CaptureFacts:
    """Watches the server's statistics for some time and writes the capture. Raises InputError and FailureError. `mask`:
    whether values of columns must not appear in the capture.
    """
    making.require_new(output)
    word = engines.scheme(dsn)
    engine = engines.of_scheme(word)
    watch = engine.administration.digests if engine else None
    if engine is None or watch is None:
        cause = (
            f"the engine `{engine.name}` has no statistics for captures" if engine else f"no engine supports {word}://"
        )
        raise InputError("--from", cause, "make the capture from the server's logs")
    system, secrets = engine.validated(System(engine.name, "capture", dsn=dsn), 0)

    def wait(whole_s: float, look: Callable[[], None]) -> None:
        began = time.monotonic()
        looks = 1
        while (left := began + whole_s - time.monotonic()) > 0:
            show(1 - left / whole_s, "watching the server")
            time.sleep(min(left, 1 / _POLLS_PER_S))
            if time.monotonic() - began > looks:
                look()
                looks += 1

    with engines.running(system, secrets, 0) as session:
        found = watch(session, seconds, not mask, wait)
    calls = sum(one.calls for one in found.statements)
    if not any(not one.refused for one in found.statements):
        raise InputError("--from", "no statement ran that can be replayed", "watch the server longer: --duration 5m")
    if calls > _MOST_CALLS:
        raise InputError(
            "--duration",
            f"the server ran more than {counted(_MOST_CALLS, 'statement')}",
            "watch the server for a shorter time",
        )
    return making.made(output, lambda opened: _fill(opened, found, engine.traits, mask))


def _fill(opened: duckdb.DuckDBPyConnection, found: Digests, traits: Traits, mask: bool) -> CaptureFacts:
    with durable.temporary_folder() as folder:
        for name, rows in (
            ("digests", map(_row, range(len(found.statements)), found.statements)),
            ("sets", _sets(found)),
        ):
            path = folder / name
            with path.open("wb") as out:
                out.writelines(msgspec.json.encode(row) + b"\n" for row in rows)
        _read(opened, folder, found)
    ((statements, timed, began_us, ended_us),) = asked(
        opened, "SELECT count(*), count(duration_us), min(at_us), max(at_us + coalesce(duration_us, 0)) FROM read"
    )
    ((sessions,),) = asked(opened, "SELECT count(DISTINCT session) FROM read")
    return CaptureFacts(
        schema=SCHEMA,
        format=traits.digests,
        protocol=traits.captures.protocol if traits.captures else "",
        masked=mask,
        statements=statements,
        transactions=statements,
        sessions=sessions,
        began_us=began_us,
        ended_us=ended_us,
        with_duration=timed,
        databases=(found.database,),
        notes=tuple(_notes(found, statements)),
        counters={name: count for name, count in found.counters.items() if name in marks.COUNTED},
        counted_database=found.database,
        invented=True,
    )


def _row(id: int, one: StatementDigest) -> dict[str, object]:
    template = re.sub(r"\$\d+", "?", " ".join(one.text.lower().split()))
    return {
        "id": id,
        "text": one.text,
        "template": template,
        "command": template.split(" ", 1)[0].strip("();"),
        "writes": bool(_WRITES.search(template)),
        "user": one.user,
        "calls": one.calls,
        "mean_us": one.mean_s * 1e6,
        "rows": one.rows,
        "obstacle": one.refused or None,
        "parts": len(one.texts or one.values),
    }


def _sets(found: Digests) -> list[dict[str, object]]:
    return [
        {"id": id, "part": part, "literal": text, "parameters": values}
        for id, one in enumerate(found.statements)
        for part, (text, values) in enumerate(
            [(text, ()) for text in one.texts] or [(None, values) for values in one.values]
        )
    ] or [{"id": -1, "part": 0, "literal": "", "parameters": [""]}]


def _read(opened: duckdb.DuckDBPyConnection, folder: Path, found: Digests) -> None:
    digests, sets = (
        f"read_json({quoted(str(folder / name))}, format = 'newline_delimited'" for name in ("digests", "sets")
    )
    of_digest = (
        "{id: 'INTEGER', text: 'VARCHAR', template: 'VARCHAR', command: 'VARCHAR', writes: 'BOOLEAN', user: 'VARCHAR', "
        "calls: 'BIGINT', mean_us: 'DOUBLE', rows: 'BIGINT', obstacle: 'VARCHAR', parts: 'BIGINT'}"
    )
    of_set = "{id: 'INTEGER', part: 'BIGINT', literal: 'VARCHAR', parameters: 'VARCHAR[]'}"
    length_us = int(found.length_s * 1e6)
    try:
        opened.execute("SELECT setseed(0.5)")
        opened.execute(f"CREATE TABLE digests AS SELECT * FROM {digests}, columns = {of_digest})")
        opened.execute(f"CREATE TABLE sets AS SELECT * FROM {sets}, columns = {of_set})")
        # Only the total number of rows of a statement is known. It is divided among the calls without a remainder.
        opened.execute(f"""
            CREATE TABLE read AS
            WITH calls AS (
                SELECT digests.*, unnest(range(calls)) AS call,
                    {found.began_us} + (random() * {length_us})::BIGINT AS at_us
                FROM digests
            ), numbered AS (SELECT *, row_number() OVER (ORDER BY at_us, id, call) AS number FROM calls)
            SELECT number, (1 + number % {found.sessions})::UINTEGER AS session, number::UBIGINT AS transaction, at_us,
                template, coalesce(literal, text) AS text, CASE WHEN literal IS NULL THEN '' END AS prepared,
                coalesce(parameters, []) AS parameters, mean_us::BIGINT AS duration_us,
                CAST(NULL AS VARCHAR) AS error, "user", {quoted(found.database)} AS "database", '' AS application,
                command, writes, obstacle,
                rows * (call + 1) // calls - rows * call // calls AS row_count
            FROM numbered LEFT JOIN sets ON sets.id = numbered.id AND sets.part = call % greatest(parts, 1)
        """)
    except duckdb.Error as error:
        raise FailureError("capture", str(error).splitlines()[0]) from error


def _notes(found: Digests, statements: int) -> list[Note]:
    able = [one for one in found.statements if not one.refused]
    parameters = sum((one.drawn + one.made_up) * one.calls for one in able)
    drawn = sum(one.drawn * one.calls for one in able)
    notes = [note("capture-invented", sessions=found.sessions)]
    if parameters:
        notes.append(note("capture-drawn", share=drawn / parameters))
    for code in dict.fromkeys(one.refused for one in found.statements if one.refused):
        count = sum(one.calls for one in found.statements if one.refused == code)
        notes.append(note("capture-not-replayable", reason=code, statements=count, share=count / statements))
    if found.hidden:
        notes.append(note("capture-hidden", statements=found.hidden))
    return [*notes, *found.notes]
