"""`ironbench capture`: makes a capture from log files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec

from ironbench import engines
from ironbench.errors import FailureError, InputError
from ironbench.model.note import Note, note
from ironbench.words import counted, grouped
from ironbench.workloads.capture import making, other_logs
from ironbench.workloads.capture.file import SCHEMA, CaptureFacts, asked, quoted
from ironbench.workloads.capture.marks import TEMPLATE, Mark, together
from ironbench.workloads.capture.marks import read as read_mark

if TYPE_CHECKING:
    from ironbench._core import LogRows

Show = Callable[[float, str], None]

_SLOW_S = 0.001
"""If none of many statements took less than this number of seconds, the log probably contains only slow statements.
`log_min_duration_statement = 1` is the smallest threshold of PostgreSQL, and most servers run a BEGIN or a COMMIT in a
tenth of this time."""
_MANY = 100
_POLLS_PER_S = 4


def capture(
    logs: Sequence[str], output: str, prefix: str = "", mask: bool = False, show: Show = lambda share, text: None
) -> CaptureFacts:
    """Reads the logs and writes the capture. Raises InputError if the output exists or the logs contain no statements,
    and FailureError if the capture cannot be written.

    `prefix`: `log_line_prefix` of logs in the format stderr.
    """
    making.require_new(output)
    from ironbench import _core

    files = list(_files(logs))
    if (other := other_logs.reader_of(files)) is not None:
        reader, protocol, paths = other
        if prefix:
            raise InputError("--prefix", f"has no effect on a {reader.format}", "remove it")

        def fill_from(opened: duckdb.DuckDBPyConnection) -> CaptureFacts:
            other_logs.fill(opened, reader, paths, mask, show)
            facts = described(opened, {"format": reader.format}, mask, protocol)
            return other_logs.with_notes(facts, reader.damage)

        return making.made(output, fill_from)
    size = sum(Path(path).stat().st_size for path, _ in files)
    request = {
        "files": [{"path": path, "named": named} for path, named in files],
        "prefix": prefix or None,
        "mask": mask,
    }
    rows = _core.LogRows(msgspec.json.encode(request))

    def fill(opened: duckdb.DuckDBPyConnection) -> CaptureFacts:
        with _shown(rows, size, show):
            _read(opened, rows, prefix)
        return described(opened, msgspec.json.decode(rows.summary()), mask)

    return making.made(output, fill)


def _files(logs: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yields the paths of the files. The second value is whether the user named the file itself and not its
    directory."""
    for log in logs:
        path = Path(log)
        if path.is_dir():
            inside = sorted(one for one in path.iterdir() if one.is_file() and not one.name.startswith("."))
            if not inside:
                raise InputError(
                    log, "the directory contains no files", "give the paths of log files, or of their directory"
                )
            yield from ((str(one), False) for one in inside)
        elif path.is_file():
            yield log, True
        else:
            raise InputError(
                log, "does not exist, or is not a file", "give the paths of log files, or of their directory"
            )


@contextmanager
def _shown(rows: LogRows, size: int, show: Show) -> Iterator[None]:
    """Shows the progress of reading. Stops the reader if the block ends early."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(1 / _POLLS_PER_S):
            show(min(1.0, rows.bytes_read / max(1, size)), f"{grouped(rows.statements)} statements")

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:
        rows.stop()
        over.set()
        watching.join()


def _read(opened: duckdb.DuckDBPyConnection, rows: LogRows, prefix: str) -> None:
    try:
        opened.execute("CREATE TABLE read AS SELECT * FROM rows")
    except duckdb.Error as error:
        raise FailureError("capture", str(error).splitlines()[0]) from error
    if not asked(opened, "SELECT count(*) FROM read")[0][0]:
        summary = msgspec.json.decode(rows.summary())
        if prefix and summary["unreadable"]:
            lines = counted(summary["unreadable"], "line does", "lines do")
            cause = f"the logs contain no statements, and {lines} not match this prefix"
            hint = (
                "give the value of `show log_line_prefix`, with all spaces; after %q, the server writes nothing for "
                "its own processes"
            )
            raise InputError(f"--prefix {prefix!r}", cause, hint)
        cause = "contain no statements"
        hint = (
            "the server must log them in English: log_min_duration_statement = 0 (or log_statement = all), "
            "lc_messages = C"
        )
        raise InputError("logs", cause, hint)


def described(
    opened: duckdb.DuckDBPyConnection, summary: Mapping[str, Any], mask: bool, protocol: str = ""
) -> CaptureFacts:
    """Marks the statements that a replay leaves out. Returns the facts about the capture.

    `summary`: what the core noticed (`Summary` in crates/ironbench-capture/src/rows.rs). Fields may be missing.
    """
    marks, outside = _between_marks(opened)
    cut_at = summary.get("cut_at")
    if cut_at:
        # The server cuts a value before a character that does not fit. In UTF-8, a character has up to four bytes.
        ends = f"ends_with(one, '...') AND strlen(one) - 3 BETWEEN {cut_at - 3} AND {cut_at}"
        opened.execute(
            f"UPDATE read SET obstacle = 'cut-parameters' WHERE obstacle IS NULL AND parameters IS NOT NULL "
            f"AND len(list_filter(parameters, lambda one: one IS NOT NULL AND {ends})) > 0"
        )
    ((statements, transactions, sessions, began_us, ended_us, timed, quickest_us, reads),) = asked(
        opened,
        "SELECT count(*), count(DISTINCT transaction), count(DISTINCT session), min(at_us), "
        "max(at_us + coalesce(duration_us, 0)), count(duration_us), min(duration_us), "
        "count(*) FILTER (command = 'select') FROM read",
    )
    databases = asked(opened, 'SELECT DISTINCT "database" FROM read WHERE "database" <> \'\' ORDER BY 1')
    obstacles = asked(
        opened, "SELECT obstacle, count(*) FROM read WHERE obstacle IS NOT NULL GROUP BY 1 ORDER BY 2 DESC"
    )
    slow = timed > _MANY and quickest_us >= _SLOW_S * 1e6
    captures = engines.capturing(protocol)
    slow_s = quickest_us / 1e6 if slow else None
    notes = [*_notes(summary, statements, obstacles, timed, slow_s, reads, captures.logs_all)]
    counted_database, counters = together(marks) if len(marks) > 1 else ("", {})
    if len(marks) == 1:
        notes.append(note("capture-one-mark"))
    elif marks and not counters:
        notes.append(note("capture-counters-reset"))
    if outside:
        notes.append(note("capture-outside-marks", statements=outside))
    return CaptureFacts(
        schema=SCHEMA,
        format=summary["format"],
        protocol=protocol,
        masked=mask,
        statements=statements,
        transactions=transactions,
        sessions=sessions,
        began_us=began_us,
        ended_us=ended_us,
        with_duration=timed,
        databases=tuple(name for (name,) in databases),
        notes=tuple(notes),
        counters=counters,
        counted_database=counted_database,
    )


def _between_marks(opened: duckdb.DuckDBPyConnection) -> tuple[list[Mark], int]:
    """Removes the sessions that sent marks, because they are not part of the workload. If there are several marks, also
    removes statements before the first and after the last one. Returns the marks, and the number of statements removed
    in this way."""
    rows = asked(
        opened,
        f'SELECT at_us, "database", text FROM read WHERE template LIKE {quoted(TEMPLATE)} AND error IS NULL '
        "ORDER BY number",
    )
    marks = [read_mark(*row) for row in rows]
    opened.execute(
        f"DELETE FROM read WHERE session IN (SELECT session FROM read WHERE template LIKE {quoted(TEMPLATE)})"
    )
    outside = 0
    if len(marks) > 1:
        condition = f"at_us < {marks[0].at_us} OR at_us > {marks[-1].at_us}"
        ((outside,),) = asked(opened, f"SELECT count(*) FROM read WHERE {condition}")
        # If a transaction began before the first mark, its first statements are removed, so it cannot be replayed.
        opened.execute(
            "UPDATE read SET obstacle = 'begun-before' WHERE transaction IN "
            f"(SELECT transaction FROM read WHERE at_us < {marks[0].at_us})"
        )
        opened.execute(f"DELETE FROM read WHERE {condition}")
    if not asked(opened, "SELECT count(*) FROM read")[0][0]:
        raise InputError("logs", "contain no statements between the marks", "run the workload between both marks")
    return marks, outside


def _notes(
    summary: Mapping[str, Any],
    whole: int,
    obstacles: Sequence[tuple[str, int]],
    timed: int,
    slow_s: float | None,
    reads: int,
    setting: str,
) -> Iterator[Note]:
    for obstacle, count in obstacles:
        yield note("capture-not-replayable", reason=obstacle, statements=count, share=count / whole)
    if not timed:
        yield note("capture-without-durations", setting=setting)
    elif timed < whole:
        yield note("capture-few-durations", share=1 - timed / whole)
    if slow_s is not None:
        yield note("capture-slow-only", least_s=slow_s, setting=setting)
    if not reads and whole > _MANY:
        yield note("capture-without-reads", setting=setting)
    if summary.get("durations_alone"):
        yield note("capture-durations-alone", count=summary["durations_alone"])
    if summary.get("cut_at"):
        yield note("capture-cut-parameters", length=summary["cut_at"])
    if summary.get("unreadable"):
        files = tuple(summary.get("unreadable_files", ()))
        yield note("capture-unreadable", lines=summary["unreadable"], files=files)
    if summary.get("truncated"):
        yield note("capture-truncated", files=summary["truncated"])
    if summary.get("truncated_archives"):
        yield note("capture-truncated-archives", files=tuple(summary["truncated_archives"]))
    if summary.get("jumps"):
        yield note("capture-clock-steps", steps=summary["jumps"])
    if summary.get("repeated"):
        yield note("capture-repeated", entries=summary["repeated"])
    if summary.get("unknown_zones"):
        yield note("capture-unknown-zones", zones=tuple(summary["unknown_zones"]))
