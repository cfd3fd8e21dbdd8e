"""Makes a capture from logs that the core does not read. These logs are read by an engine's `LogReader`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import duckdb
import msgspec

from ironbench import engines
from ironbench.errors import FailureError, InputError
from ironbench.model.logged import LogDamage, LogReader
from ironbench.model.note import Note, note
from ironbench.words import grouped
from ironbench.workloads.capture.file import CaptureFacts

Show = Callable[[float, str], None]

_SHOWN = 20_000
"""Number of statements between two updates of the progress bar."""


def reader_of(files: Sequence[tuple[str, bool]]) -> tuple[LogReader, str, list[str]] | None:
    """Returns the engine's reader for these files, the protocol of the engine's captures, and the files that the reader
    reads. Returns None if the core reads all files. Raises InputError.

    `files`: path, and whether the user named the file itself and not its directory.
    """
    found = [(path, _reader(Path(path)), named) for path, named in files]
    known = [(path, *read) for path, read, _ in found if read is not None]
    if not known:
        return None
    formats = list(dict.fromkeys(reader.format for _, reader, _ in known))
    if len(formats) > 1:
        raise InputError("logs", f"have several formats: {' and '.join(formats)}", "give only files of one format")
    for path, read, named in found:
        if read is None and named:
            raise InputError(
                path, f"has another format than the other files ({formats[0]})", "give only files of one format"
            )
    paths = sorted((path for path, _, _ in known), key=lambda path: (_began_us(path), path))
    _, reader, protocol = known[0]
    return reader, protocol, paths


def _reader(path: Path) -> tuple[LogReader, str] | None:
    for engine in map(engines.get, engines.names()):
        if engine.traits.captures and (reader := engine.log_reader(path)):
            return reader, engine.traits.captures.protocol
    return None


def _began_us(path: str) -> int:
    found = _reader(Path(path))
    first = next(iter(found[0].read([path])), None) if found else None
    return first.at_us if first else 0


def fill(opened: duckdb.DuckDBPyConnection, reader: LogReader, paths: list[str], mask: bool, show: Show) -> None:
    """Creates the table `read` with the statements of the logs. Raises InputError and FailureError. `mask`: whether the
    capture contains the templates of statements in place of their texts."""
    from ironbench import _core

    rows = _core.LoggedRows(mask)
    began = False

    def store() -> None:
        nonlocal began
        if (batch := rows.take()) is not None:
            opened.register("batch", batch)
            opened.execute("INSERT INTO read FROM batch" if began else "CREATE TABLE read AS FROM batch")
            began = True

    try:
        for number, one in enumerate(reader.read(paths)):
            if number % _SHOWN == 0:
                show(0.0, f"{grouped(number)} statements")
            names, text = (one.user, one.database), one.text.encode()
            known = (one.prepared, one.values, one.types, one.duration_us, one.rows)
            if rows.add(one.session, one.at_us, text, names, *known):
                store()
        store()
    except duckdb.Error as error:
        raise FailureError("capture", str(error).splitlines()[0]) from error
    if not began:
        raise InputError("logs", "contain no statements", "give logs from a time in which the server ran statements")


def with_notes(facts: CaptureFacts, damage: LogDamage) -> CaptureFacts:
    """Adds notes about the logs to the facts about a capture."""
    return msgspec.structs.replace(facts, notes=(*facts.notes, *_notes(damage)))


def _notes(damage: LogDamage) -> Iterator[Note]:
    if damage.whole_seconds:
        yield note("capture-whole-seconds")
    if damage.truncated_archives:
        yield note("capture-truncated-archives", files=tuple(damage.truncated_archives))
    if damage.begun_before:
        yield note("capture-unknown-users", sessions=damage.begun_before)
    if damage.of_triggers:
        yield note("capture-trigger-statements", statements=damage.of_triggers)
    if damage.unreadable:
        yield note("capture-unreadable", lines=damage.unreadable)
