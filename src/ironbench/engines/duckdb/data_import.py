"""Imports the user's own data into DuckDB. The data are a database file, which is copied and never modified."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ironbench.engines.data_import import DataImport, Dump, RestoreResult, Show
from ironbench.engines.duckdb.process import DuckdbProcess, OpenRequest
from ironbench.engines.duckdb.session import FILE
from ironbench.engines.library import place_file, require_closed, setup_text
from ironbench.errors import FailureError, InputError
from ironbench.model.session import Session
from ironbench.model.system import System

_MAGIC, _MAGIC_AT = b"DUCK", 8
"""Magic bytes of a database file, and their offset. A checksum precedes them (duckdb.org, "Storage Versions and
Format")."""


class DuckdbDataImport(DataImport):
    dumps = "a closed DuckDB database file"
    setup = True

    def examined(self, system: System, dump: Path) -> Dump:
        """Opens the file read-only in a child process, so that DuckDB itself checks whether the file can be read."""
        hint = f'close the database, or run: duckdb {dump.name} "checkpoint"'
        require_closed(dump, "a DuckDB database", _MAGIC, _MAGIC_AT, (".wal",), hint)
        _require_readable(f"dump {dump}", dump)
        return Dump("DuckDB database file", "DuckDB", dump.stat().st_size)

    def place_dump(self, system: System, dump: Path) -> None:
        place_file(system, dump, FILE)

    def restored(self, session: Session, dump: Path, jobs: int, show: Show) -> RestoreResult:
        """Checks that the file is undamaged. Reads every column once, because DuckDB verifies the checksum of a block
        only when it reads the block."""
        tables = session.query(
            "select format('\"{}\".\"{}\"', replace(schema_name, '\"', '\"\"'), replace(table_name, '\"', '\"\"')) "
            "from duckdb_tables() where not internal and database_name = current_database()"
        )
        for number, (table,) in enumerate(tables):
            show(number / len(tables), str(table))
            try:
                session.query(f"select bit_xor(hash(columns(*))) from {table}")
            except FailureError as error:
                cause = f"table {table} is damaged: {error.cause.splitlines()[0]}"
                raise FailureError(f"dump {dump}", cause, "repair the file") from None
        return RestoreResult()

    def set_up(self, session: Session, file: Path, show: Show, dump: Path | None = None) -> Mapping[str, int]:
        """Runs the SQL file. The statements cannot access other files, because the content key of the data covers only
        the SQL file and the dump."""
        text = setup_text(file)
        session.query("set enable_external_access = false")
        try:
            session.query(text)
        except FailureError as error:
            cause, hint = error.cause, "correct the file"
            if "disabled by configuration" in cause:
                cause = f"the file accesses data outside the database: {cause.splitlines()[0]}"
                hint = "load the data into a DuckDB database file, and use that as the dump"
            raise FailureError(str(file), cause, hint) from None
        finally:
            session.restart()  # only a new process can enable enable_external_access again
        return {}

    def finish_load(self, session: Session) -> None:
        session.query("analyze")
        session.query("checkpoint")


def _require_readable(subject: str, dump: Path) -> None:
    try:
        DuckdbProcess(OpenRequest(str(dump.resolve()), {"access_mode": "read_only"})).stop()
    except FailureError as error:
        cause, hint = error.cause.splitlines()[0], "repair the file, or use another one"
        if "Could not set lock" in cause:
            cause, hint = f"the file is in use: {cause}", "close the program that has it open"
        elif "version number" in cause or "newer" in cause:
            cause = f"written by another version of DuckDB: {cause}"
            hint = "upgrade ironbench's DuckDB (pip install -U duckdb), or create a new file with EXPORT DATABASE"
        raise InputError(subject, cause, hint) from None
