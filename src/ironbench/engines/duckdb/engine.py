"""The engine DuckDB: a library in a child process that keeps the database open during the session."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ironbench import units
from ironbench.engines.administration import Administration
from ironbench.engines.base import EngineCosts, Traits
from ironbench.engines.dialect import Dialect, listed
from ironbench.engines.duckdb import profile_groups, settings
from ironbench.engines.duckdb.data_import import DuckdbDataImport
from ironbench.engines.duckdb.process import DuckdbProcess, OpenRequest, package_folder
from ironbench.engines.duckdb.session import FILE, DuckdbSession
from ironbench.engines.library import LibraryEngine
from ironbench.errors import FailureError
from ironbench.host import data_dirs, register
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session
from ironbench.model.system import Layout, System
from ironbench.words import counted

_BOX = re.compile(r"[╭┌]─+ ?([A-Z][A-Za-z ]+?) ?─")
_TABLE = re.compile(r"│ Table: ([\w.]+)")
_ALL = """
    select format('"{}"."{}"', replace(schema_name, '"', '""'), replace(table_name, '"', '""'))
      from duckdb_tables() where database_name = current_database() and not internal and not temporary
     order by schema_name, table_name
"""


class DuckdbDialect(Dialect):
    def present(self, tables: Sequence[str]) -> str:
        return f"select table_name from duckdb_tables() where table_name in ({listed(tables)})"

    def non_tables(self, tables: Sequence[str]) -> str:
        return f"select view_name, 'view' from duckdb_views() where view_name in ({listed(tables)}) order by view_name"

    def database_size(self) -> str:
        """Returns a query for the size of the whole database file."""
        return "select used_blocks * block_size from pragma_database_size()"

    def explain(self, *, measured: bool) -> str:
        return "EXPLAIN ANALYZE " if measured else "EXPLAIN "

    def steps(self, plan: str) -> Iterator[str]:
        """Returns the steps of a plan, which DuckDB draws as boxes. The first line of a box names the step. The table
        may be named in one of the next three lines."""
        lines = plan.splitlines()
        for number, line in enumerate(lines):
            for head in _BOX.finditer(line):
                table = ""
                for below in lines[number + 1 : number + 4]:
                    if named := _TABLE.match(below, head.start()):
                        table = f" on {named[1].rpartition('.')[2]}"
                        break
                yield f"{head[1]}{table}"


class DuckdbAdministration(Administration):
    def warm(self, session: Session, tables: tuple[str, ...]) -> str:
        if not tables:
            tables = tuple(row[0] or "" for row in session.query(_ALL))
        for table in tables:
            # MIN and MAX are not used, because DuckDB would answer them from statistics and not read the data.
            session.query(f"select bit_xor(hash(columns(*))) from {table}")
        return f"every column of {counted(len(tables), 'table')} was read"


class DuckdbEngine(LibraryEngine):
    name = "duckdb"
    title, file, version = "DuckDB", FILE, "2"
    beside_data: Mapping[str, str] = {"log": "DuckDB keeps its WAL next to the data file"}
    never_ideal: Mapping[str, str] = {
        "log": "DuckDB keeps its WAL next to the data file, so a WAL in memory would also put the data in memory",
        "temp": "DuckDB writes temporary files only for data above its memory limit; raise the limit instead",
        "data": "DuckDB caches data up to its memory limit; put the data directory in memory instead",
        "client": "the client only sends statements to DuckDB's process and receives the results",
    }
    profile_groups = profile_groups.GROUPS
    traits = Traits(
        doc="DuckDB in a child process of ironbench; --memory limits DuckDB's memory, --set changes DuckDB's settings",
        abilities=frozenset({"data", "queries", "scripts"}),
        preference=60,
        protocols=("library",),
        costs=EngineCosts(
            start_stop_s=0.5,
            log_bytes=0,  # loading writes row groups directly into the file, not into the WAL
            mixed_read_bytes=262144,  # DuckDB reads whole blocks
            queries_s=3.0,
            queries_read=5.0,
        ),
        dialect=DuckdbDialect(),
        packages=("duckdb",),
    )
    administration = DuckdbAdministration()
    data_import = DuckdbDataImport()

    def validated(self, system: System, clients: int) -> tuple[System, Secrets]:
        """Returns the system with absolute directories. Raises InputError."""
        self.refuse(system, clients)
        package_folder()
        # Names of DuckDB's settings are case-insensitive.
        system = replace(system, settings={name.lower(): value for name, value in system.settings.items()})
        settings.validate(system)
        temp = None if system.layout.temp is None else data_dirs.check(system.layout.temp, "temp")
        data = data_dirs.check(str(self.folder(system)), "data")
        return replace(system, layout=replace(system.layout, data=data, temp=temp)), Secrets()

    def identity(self, system: System, secrets: Secrets) -> dict[str, str]:
        version, source = _query_in_memory("select library_version, source_id from pragma_version()")
        return {"version": version, "program": source}

    def start(self, system: System, secrets: Secrets, clients: int) -> DuckdbSession:
        """Creates the database file if it is missing, and starts the process that opens it. Raises FailureError."""
        folder = data_dirs.claim(str(self.folder(system)), "data")
        temp = folder if system.layout.temp is None else data_dirs.claim(system.layout.temp, "temp")
        lock = data_dirs.lock(folder)
        entry = None
        try:
            entry = self.enter_register(folder, system.memory_total_bytes)
            return DuckdbSession(system, folder, temp, lock, entry)
        except BaseException:
            if entry is not None:
                register.end(entry)
            os.close(lock)
            raise

    def cache_bytes(self, settings: Mapping[str, str], clients: int) -> int | None:
        text = settings.get("memory_limit")
        return units.size("memory_limit", text) if text else None

    def basis(self, system: System) -> str:
        (version,) = _query_in_memory("select library_version from pragma_version()")
        shape = [f"{name}={value}" for name, value in sorted(settings.shaping(system.settings).items())]
        return " ".join(["duckdb", version, *shape])

    def loading_system(self, system: System, folder: Path) -> System:
        return System(self.name, system.label, settings.shaping(system.settings), Layout(str(folder)))


def _query_in_memory(sql: str) -> list[str]:
    trial = DuckdbProcess(OpenRequest(":memory:"))
    try:
        return [value or "" for value in trial.connect().query(sql)[0]]
    except FailureError as error:
        raise FailureError("DuckDB", error.cause) from error
    finally:
        trial.stop()


ENGINE = DuckdbEngine()
