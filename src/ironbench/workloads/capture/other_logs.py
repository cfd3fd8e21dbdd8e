"""Makes a capture from logs that the core does not read. These logs are read by an engine's `LogReader`. Such a capture
can be shown but not replayed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from ironbench import engines
from ironbench.errors import FailureError, InputError
from ironbench.model.logged import LogDamage, LoggedStatement, LogReader
from ironbench.model.note import Note, note
from ironbench.words import grouped
from ironbench.workloads.capture import making
from ironbench.workloads.capture.file import SCHEMA, CaptureFacts, asked, quoted

Show = Callable[[float, str], None]

_LONGEST = 1 << 26
"""Maximum length of a statement as JSON, in bytes."""
_SHOWN = 20_000
"""Number of statements between two updates of the progress bar."""
_COLUMNS = (
    "{session: 'UINTEGER', transaction: 'UBIGINT', at_us: 'BIGINT', text: 'VARCHAR', template: 'VARCHAR', "
    "command: 'VARCHAR', writes: 'BOOLEAN', duration_us: 'BIGINT', row_count: 'BIGINT', user: 'VARCHAR', "
    "database: 'VARCHAR', obstacle: 'VARCHAR'}"
)


def reader_of(files: Sequence[tuple[str, bool]]) -> tuple[LogReader, list[str]] | None:
    """Returns the engine's reader for these files, and the files that it reads. Returns None if the core reads all
    files. Raises InputError.

    `files`: path, and whether the user named the file itself and not its directory.
    """
    found = [(path, _reader(Path(path)), named) for path, named in files]
    known = [(path, reader) for path, reader, _ in found if reader is not None]
    if not known:
        return None
    formats = list(dict.fromkeys(reader.format for _, reader in known))
    if len(formats) > 1:
        raise InputError("logs", f"have several formats: {' and '.join(formats)}", "give only files of one format")
    for path, reader, named in found:
        if reader is None and named:
            raise InputError(
                path, f"has another format than the other files ({formats[0]})", "give only files of one format"
            )
    paths = sorted((path for path, _ in known), key=lambda path: (_began_us(path), path))
    return known[0][1], paths


def _reader(path: Path) -> LogReader | None:
    readers = (engines.get(name).log_reader(path) for name in engines.names())
    return next(filter(None, readers), None)


def _began_us(path: str) -> int:
    reader = _reader(Path(path))
    first = next(iter(reader.read([path])), None) if reader else None
    return first.at_us if first else 0


def capture(reader: LogReader, paths: list[str], output: str, mask: bool, show: Show) -> CaptureFacts:
    """Reads the logs and writes the capture. Raises InputError and FailureError. `mask`: whether the capture contains
    the templates of statements in place of their texts."""
    return making.made(output, lambda opened: _fill(opened, reader, paths, mask, show))


def _fill(
    opened: duckdb.DuckDBPyConnection, reader: LogReader, paths: list[str], mask: bool, show: Show
) -> CaptureFacts:
    with tempfile.TemporaryDirectory(prefix="ironbench-capture-") as folder:
        place = Path(folder) / "statements"
        try:
            with place.open("wb") as out:
                out.writelines(_lines(reader.read(paths), mask, show))
        except (OSError, EOFError) as error:
            raise FailureError("logs", f"cannot be read: {error}") from error
        if not place.stat().st_size:
            raise InputError(
                "logs", "contain no statements", "give logs from a time in which the server ran statements"
            )
        try:
            opened.execute(
                "CREATE TABLE read AS SELECT row_number() OVER () AS number, *, '' AS application, "
                "CAST(NULL AS VARCHAR) AS prepared, CAST(NULL AS VARCHAR[]) AS parameters, "
                f"CAST(NULL AS VARCHAR) AS error FROM read_json({quoted(str(place))}, format = 'newline_delimited', "
                f"columns = {_COLUMNS}, maximum_object_size = {_LONGEST})"
            )
        except duckdb.Error as error:
            raise FailureError("capture", str(error).splitlines()[0]) from error
    return _described(opened, reader, mask)


def _lines(statements: Iterator[LoggedStatement], mask: bool, show: Show) -> Iterator[bytes]:
    for number, one in enumerate(statements):
        if number % _SHOWN == 0:
            show(0.0, f"{grouped(number)} statements")
        row: dict[str, Any] = {
            "session": one.session,
            "transaction": one.transaction,
            "at_us": one.at_us,
            "text": one.template if mask else one.text,
            "template": one.template,
            "command": one.command,
            "writes": one.writes,
            "duration_us": one.duration_us,
            "row_count": one.rows,
            "user": one.user,
            "database": one.database,
            "obstacle": "password" if one.hides else None,
        }
        yield msgspec.json.encode(row) + b"\n"


def _described(opened: duckdb.DuckDBPyConnection, reader: LogReader, mask: bool) -> CaptureFacts:
    ((statements, transactions, sessions, began_us, ended_us, timed),) = asked(
        opened,
        "SELECT count(*), count(DISTINCT transaction), count(DISTINCT session), min(at_us), "
        "max(at_us + coalesce(duration_us, 0)), count(duration_us) FROM read",
    )
    databases = asked(opened, 'SELECT DISTINCT "database" FROM read WHERE "database" <> \'\' ORDER BY 1')
    return CaptureFacts(
        schema=SCHEMA,
        format=reader.format,
        masked=mask,
        statements=statements,
        transactions=transactions,
        sessions=sessions,
        began_us=began_us,
        ended_us=ended_us,
        with_duration=timed,
        databases=tuple(name for (name,) in databases),
        notes=tuple(_notes(reader.damage, timed)),
        replayable=False,
    )


def _notes(damage: LogDamage, timed: int) -> Iterator[Note]:
    yield note("capture-not-replayed")
    if damage.whole_seconds:
        yield note("capture-whole-seconds")
    if not timed:
        yield note("capture-durations-unknown")
    if damage.begun_before:
        yield note("capture-unknown-users", sessions=damage.begun_before)
    if damage.unreadable:
        yield note("capture-unreadable", lines=damage.unreadable)
