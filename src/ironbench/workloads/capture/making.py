"""Writes a capture. The file appears completely or not at all, and no file is overwritten."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import duckdb
import msgspec

from ironbench.errors import FailureError, InputError
from ironbench.host import durable
from ironbench.workloads.capture.file import COLUMNS, KEY, CaptureFacts, database, facts, quoted

_BREAKING = (
    *("copy", "two-phase", "no-parameters", "cut-parameters", "password", "encoding", "begun-before"),
    *("long-text", "binary-parameters", "gap", "function-call", "other-database"),
)
"""If a statement is left out for one of these reasons, a replay leaves out the whole transaction. Otherwise, its other
statements could fail or do different work."""

_MEMORY = "0.25GB"
"""Memory limit of DuckDB. A log of 700 MB takes 5.4 s of CPU time, and 5.2 s with 1 GB."""
_IN_MEMORY = ":memory:"
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
"""Errors of file systems without hard links, such as FAT and some network file systems."""
_THREADS = 2
"""Number of DuckDB's threads. Each thread needs some of the memory, so the limit would not suffice for many."""


def made(
    output: str, fill: Callable[[duckdb.DuckDBPyConnection], CaptureFacts], place: str = _IN_MEMORY
) -> CaptureFacts:
    """Writes a capture. Raises InputError if the output exists, FailureError if it cannot be written, and the
    exceptions of `fill`. `fill`: creates the table `read` and returns the facts about the capture. `place`: path of the
    DuckDB database for this table, whose contents do not change.
    """
    target = Path(output)
    require_new(output)
    try:
        with durable.unfinished_capture(target) as aside:
            with database(place, memory_limit=_MEMORY, threads=_THREADS) as opened:
                if place != _IN_MEMORY:
                    opened.execute("BEGIN")  # and no COMMIT: if this attempt fails, another one needs all statements
                described = fill(opened)
                _write(opened, aside, described)
            _give_name(aside, target)
    except FileExistsError:
        raise InputError(output, "exists, and captures are never overwritten", "use another name") from None
    except duckdb.Error as error:
        raise FailureError(output, f"could not be written: {str(error).splitlines()[0]}", "use another file") from error
    except OSError as error:
        raise FailureError(output, f"could not be written: {error.strerror or error}", "use another file") from error
    return facts(output)


def _give_name(aside: Path, target: Path) -> None:
    """Gives a written file its name. Raises FileExistsError if the name has been taken in the meantime.

    The file is synced, because the partial capture of a proxy is removed afterwards.
    """
    durable.sync(aside)
    try:
        os.link(aside, target)  # unlike a rename, this fails if the file exists
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        target.touch(exist_ok=False)
        aside.replace(target)


def require_new(output: str) -> None:
    """Raises InputError if the file exists already, or if its directory does not exist."""
    target = Path(output)
    if target.exists():
        raise InputError(output, "exists, and captures are never overwritten", "use another name, or remove the file")
    if not target.parent.is_dir():
        raise InputError(
            output, f"the directory {target.parent} does not exist", "create the directory, or use another one"
        )


def _write(opened: duckdb.DuckDBPyConnection, path: Path, described: CaptureFacts) -> None:
    """Writes the statements in the order in which they were read. This is nearly the order of time. The file exists and
    is locked, so DuckDB must not replace it."""
    breaking = ", ".join(map(quoted, _BREAKING))
    left_out = "coalesce(obstacle, CASE WHEN transaction IN (FROM broken) THEN 'transaction' END) AS left_out"
    metadata = quoted(msgspec.json.encode(described).decode())
    try:
        for column in ("types VARCHAR", "generated UBIGINT"):  # only some captures know these
            opened.execute(f"ALTER TABLE read ADD COLUMN IF NOT EXISTS {column}")
        opened.execute(f"CREATE TABLE broken AS SELECT DISTINCT transaction FROM read WHERE obstacle IN ({breaking})")
        opened.execute(
            f"COPY (SELECT {COLUMNS}, {left_out} FROM read ORDER BY number) TO {quoted(str(path))} "
            f"(FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false, KV_METADATA {{{KEY}: {metadata}}})"
        )
    except duckdb.Error as error:
        raise FailureError(
            str(path), f"could not be written: {str(error).splitlines()[0]}", "use another file"
        ) from error
