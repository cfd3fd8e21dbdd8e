"""Reads captures. A capture is a Parquet file with a row for each statement. The metadata of the file describe how the
capture was made and what it lacks."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from ironbench.errors import FailureError, InputError
from ironbench.host import durable
from ironbench.model.note import Note

KEY = "ironbench_capture"
"""Key of the capture's metadata in the Parquet file."""
SCHEMA = 2
_UNTYPED = 1
"""Version of captures without the columns `parameter_types` and `generated_key`."""
PROXY = "proxy"
"""Format of a capture that a proxy has recorded."""
_MEMORY = "1GB"
"""Memory limit of DuckDB. Larger intermediate results are written to temporary files."""
MAKE_ROOM = "free memory and disk space, or set TMPDIR to a directory with more free space"
_HINT = "make a capture: ironbench capture LOG -o FILE.capture"

COLUMNS = """
    number, session, transaction, make_timestamp(at_us) AS started_at, template, text, prepared, parameters,
    duration_us, row_count, error, "user" AS user_name, "database" AS database_name,
    application AS application_name, command, writes, obstacle, types AS parameter_types, generated AS generated_key
"""
"""Columns of a capture, as the core names them (crates/ironbench-capture/src/rows.rs)."""


class CaptureFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a whole capture, from its metadata."""

    schema: int
    format: str
    """Format of the logs from which the capture was made, or `PROXY`."""
    protocol: str = ""
    """Protocol of the statements (`CaptureTraits.protocol`)."""
    masked: bool
    statements: int
    transactions: int
    sessions: int
    began_us: int
    """Start of the capture in microseconds since 1970."""
    ended_us: int
    with_duration: int
    """Number of statements with a known duration."""
    databases: tuple[str, ...]
    notes: tuple[Note, ...] = ()
    counters: dict[str, int] = {}
    """Growth of the server's counters during the capture. Empty if the logs contain no marks."""
    counted_database: str = ""
    """Name of the database whose `counters` are stored."""
    replayable: bool = True
    """Whether the statements can be replayed. Masked captures of MariaDB and MySQL by earlier versions can only be
    shown."""
    invented: bool = False
    """Whether the capture was made from a server's statistics. In such a capture, times, sessions, transactions and
    values are invented."""

    @property
    def length_s(self) -> float:
        return (self.ended_us - self.began_us) / 1e6

    @property
    def has_replaced_literals(self) -> bool:
        """Whether recorded literals were masked, so that a replay would be misleading."""
        return self.masked and not self.invented

    @property
    def has_durations(self) -> bool:
        """Whether the durations of nearly all statements are known. If so, the pauses between statements are also
        known."""
        return self.with_duration >= 0.9 * self.statements


@contextmanager
def database(place: str = ":memory:", **config: str | int) -> Iterator[duckdb.DuckDBPyConnection]:
    """Opens a DuckDB database, by default in memory. Data that do not fit into memory are written to a temporary
    directory, which only the user can read. Raises duckdb.Error, and FailureError if the directory cannot be
    created."""
    with ExitStack() as stack:
        try:
            spilled = stack.enter_context(durable.temporary_folder())
        except OSError as error:
            cause = f"no temporary directory can be created: {error.strerror or error}"
            raise FailureError("TMPDIR", cause, MAKE_ROOM) from error
        opened = stack.enter_context(
            duckdb.connect(place, config={"memory_limit": _MEMORY, "temp_directory": str(spilled), **config})
        )
        # The core supports only the oldest format of strings and lists.
        opened.execute("SET arrow_output_version = '1.0'")
        yield opened


@contextmanager
def reading(path: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Opens a database in memory for queries of a capture. Raises InputError if the capture is damaged, and
    FailureError if memory or disk space are exhausted."""
    try:
        with database() as opened:
            yield opened
    except (duckdb.Error, UnicodeDecodeError) as error:
        cause = f"cannot be read completely: {str(error).splitlines()[0]}"
        # DuckDB raises this too if the disk has no room for temporary files.
        if isinstance(error, duckdb.OutOfMemoryException):
            raise FailureError(path, cause, MAKE_ROOM) from error
        raise InputError(path, cause, _HINT) from error


def facts(path: str) -> CaptureFacts:
    """Returns the facts about a capture. Raises InputError if the file is not a capture."""
    return _facts(path, stamp(path))


def stamp(path: str) -> tuple[int, int]:
    """Returns the size and modification time of a file. If both are unchanged, the contents count as unchanged. Raises
    InputError."""
    try:
        known = Path(path).stat()
    except OSError as error:
        raise InputError(path, error.strerror or str(error), _HINT) from None
    return known.st_size, known.st_mtime_ns


@lru_cache(maxsize=8)
def _facts(path: str, stamp: tuple[int, int]) -> CaptureFacts:
    if is_partial(path):
        hint = f"finish it: ironbench capture {path} -o FILE.capture"
        raise InputError(path, "is a capture that has not been finished", hint)
    try:
        with database() as opened:
            rows = opened.execute("SELECT key, value FROM parquet_kv_metadata(?)", [glob.escape(path)]).fetchall()
    except duckdb.Error:
        raise InputError(path, "is not a capture", _HINT) from None
    found = {bytes(key).decode(errors="replace"): bytes(value) for key, value in rows}
    if KEY not in found:
        raise InputError(path, "is a Parquet file, but not a capture", _HINT)
    try:
        known = msgspec.json.decode(found[KEY], type=CaptureFacts)
    except msgspec.DecodeError as error:
        raise InputError(path, f"has damaged metadata: {error}", _HINT) from None
    if known.schema > SCHEMA:
        raise InputError(path, "was made by a newer version of ironbench", "update ironbench")
    return known


def is_partial(path: str) -> bool:
    """Returns whether the file is a partial capture of a proxy, which is a DuckDB database."""
    try:
        with Path(path).open("rb") as opened:
            return opened.read(12)[8:] == b"DUCK"
    except OSError:
        return False


def source(path: str) -> str:
    """Returns a capture as a table expression in SQL."""
    rows = f"read_parquet({quoted(glob.escape(path))})"
    if facts(path).schema > _UNTYPED:
        return rows
    return f"(SELECT *, CAST(NULL AS VARCHAR) AS parameter_types, CAST(NULL AS UBIGINT) AS generated_key FROM {rows})"


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def asked(opened: duckdb.DuckDBPyConnection, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    return opened.execute(sql, list(values)).fetchall()
