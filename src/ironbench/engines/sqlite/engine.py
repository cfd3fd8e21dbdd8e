"""The engine SQLite: dialect, checks, and the database file. Trials run in child processes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ironbench.engines.base import EngineCosts, SuggestedSetting, Traits, set_twice
from ironbench.engines.dialect import Dialect, listed
from ironbench.engines.durability import OFF, Hazard
from ironbench.engines.library import LibraryEngine
from ironbench.engines.server import raise_file_limit
from ironbench.engines.sqlite import profile_groups
from ironbench.engines.sqlite.data_import import SqliteDataImport
from ironbench.engines.sqlite.session import FILE, SqliteSession, shaping, statements, validated_pragmas
from ironbench.errors import InputError, written
from ironbench.host import control_groups, copies, data_dirs, register
from ironbench.model.secrets import Secrets
from ironbench.model.system import Layout, System

_MOST_PARALLEL = 9
"""Maximum number of threads for one statement. The number includes the calling thread, and the additional threads that
SQLITE_MAX_WORKER_THREADS permits, 8 by default (https://www.sqlite.org/limits.html)."""
_STEP = re.compile(r"^\d+ \d+ \d+ (.+)$", re.MULTILINE)


class SqliteDialect(Dialect):
    json = "text"

    def present(self, tables: Sequence[str]) -> str:
        return f"select name from sqlite_master where type = 'table' and name in ({listed(tables)})"

    def non_tables(self, tables: Sequence[str]) -> str:
        return (
            f"select name, type from sqlite_master where type <> 'table' and name in ({listed(tables)}) order by name"
        )

    def database_size(self) -> str:
        """Returns a query for the size of the whole database file."""
        return "select page_count * page_size from pragma_page_count(), pragma_page_size()"

    def checkpoint(self) -> str:
        return "pragma wal_checkpoint(truncate)"

    def emptied(self, table: str) -> Sequence[str]:
        return [f"delete from {table}", "vacuum", self.checkpoint()]

    def json_value(self, document: str, name: str) -> str:
        return f"{document} ->> {name}"

    def with_json_value(self, document: str, name: str, value: str) -> str:
        return f"json_set({document}, '$.' || {name}, {value})"

    def digest(self, text: str) -> str:
        """Returns an expression with a function that the core adds to each connection
        (crates/…/wire/sqlite/session.rs)."""
        return f"ironbench_digest({text})"

    def epoch(self, moment: str) -> str:
        return f"strftime('%s', {moment})"

    def explain(self, *, measured: bool) -> str:
        """Returns the prefix for a plan without times. Only SQLite's shell has plans with times, and its library does
        not."""
        return "EXPLAIN QUERY PLAN "

    def steps(self, plan: str) -> Iterator[str]:
        """Parses lines such as `SCAN lineitem` and `SEARCH orders USING INDEX orders_customer (o_custkey=?)`."""
        for line in _STEP.findall(plan):
            words = line.split()
            if words[0] in ("SCAN", "SEARCH") and len(words) > 1:
                index = re.search(r"USING (?:COVERING )?INDEX (\w+)", line)
                yield f"{words[0].lower()}{f' by {index[1]}' if index else ''} on {words[1]}"
            else:
                yield line.lower()


class SqliteEngine(LibraryEngine):
    name = "sqlite"
    title, file, version = "SQLite", FILE, "3"
    beside_data = dict.fromkeys(("temp", "log"), "SQLite keeps its WAL and temporary files next to the data file")
    never_ideal: Mapping[str, str] = {
        "log": "SQLite keeps its WAL next to the data file, so a WAL in memory would also put the data in memory",
        "data": "every connection has its own cache, which is empty at the start of each trial",
        "client": "the client and SQLite share threads, so their CPU time cannot be separated",
    }
    """Parts that cannot be made zero-latency. `temp` is not among them, because temporary files can be in memory
    (`temp_store`)."""
    profile_groups = profile_groups.GROUPS
    traits = Traits(
        files_per_client=3,  # the database, its WAL or rollback journal, and a temporary file
        # https://www.sqlite.org/pragma.html#pragma_synchronous and #pragma_journal_mode
        hazards=(
            Hazard("synchronous", OFF, "power-failure", "database"),
            Hazard("synchronous", ("normal", "1"), "power-failure", "last-commits"),
            Hazard("journal_mode", ("off", "memory"), "crash-in-transaction", "database"),
        ),
        knobs=(
            SuggestedSetting(
                "synchronous", ("full", "normal"), "With normal, a power failure may lose the last commits."
            ),
            SuggestedSetting(
                "journal_mode", ("wal", "delete"), "How SQLite makes transactions atomic: WAL or rollback journal."
            ),
        ),
        doc="SQLite in a child process of ironbench, in WAL mode with a sync at every commit; --set changes pragmas",
        abilities=frozenset(
            {
                "scripts",
                "transactions",
                "data",
                "queries",
                "in client",
                "power cut",
                "whole numbers",
                "population",
                "triggers",
            }
        ),
        preference=50,
        protocols=("library",),
        costs=EngineCosts(
            start_stop_s=0.3,
            mixed_read_bytes=4096,
            # These are the varints of a record (https://www.sqlite.org/fileformat2.html, section 2.1).
            row_overhead_bytes=6,
            queries_s=150.0,
        ),
        dialect=SqliteDialect(),
        products=("SQLite",),
        ideal_settings={"temp": ("temp_store",)},
        writers=1,
    )
    data_import = SqliteDataImport()

    def validated(self, system: System, clients: int) -> tuple[System, Secrets]:
        """Returns the system with an absolute directory, and with pragmas in lower case. Raises InputError."""
        self.refuse(system, clients)
        if system.memory_bytes is not None and "cache_size" in system.settings:
            raise set_twice(written("system.memory"), "cache_size")
        settings = validated_pragmas(system.settings)
        if system.parallelism is not None:
            settings |= _parallel(system.parallelism, settings)
        if system.memory_total_bytes is not None:
            control_groups.require(system.memory_total_bytes)
        if "temp" in system.ideal:
            settings["temp_store"] = "memory"
        layout = replace(system.layout, data=data_dirs.check(str(self.folder(system)), "data"))
        return replace(system, settings=settings, layout=layout), Secrets()

    def identity(self, system: System, secrets: Secrets) -> dict[str, str]:
        from ironbench import _core

        connection = _core.SqliteConnection(":memory:")
        try:
            return {"version": connection.query("SELECT sqlite_source_id()")[0][0] or ""}
        finally:
            connection.close()

    def cache_bytes(self, settings: Mapping[str, str], clients: int) -> int | None:
        """Returns the size of all clients' caches together. Each client has a cache. Negative sizes are in KiB,
        positive sizes in pages (sqlite.org/pragma.html#pragma_cache_size)."""
        size = int(settings.get("cache_size", "0"))
        page_bytes = int(settings.get("page_size", "4096"))
        return clients * (size * page_bytes if size > 0 else -size * 1024) or None

    def start(self, system: System, secrets: Secrets, clients: int) -> SqliteSession:
        """Opens the database file, and creates it if it is missing. Raises FailureError if the file cannot be used."""
        raise_file_limit()
        folder = data_dirs.claim(str(self.folder(system)), "data")
        lock = data_dirs.lock(folder)
        settings = dict(system.settings)
        if system.memory_bytes is not None:
            # Connections do not share their cache, so the requested size is divided by the number of clients.
            settings["cache_size"] = str(-max(1, system.memory_bytes // 1024 // clients))
        entry = None
        try:
            if system.memory_total_bytes is not None:
                # Pages are evicted before trials run in the control group. Otherwise, pages that are already cached
                # would not be charged to the group.
                copies.sync(folder)
                copies.evict(folder)
                entry = self.enter_register(folder, system.memory_total_bytes)
            session = SqliteSession(folder, settings, lock, entry)
        except BaseException:
            if entry is not None:
                register.end(entry)
            os.close(lock)
            raise
        try:
            session.require_page_size(settings.get("page_size"))
        except BaseException:
            session.stop()
            raise
        return session

    def basis(self, system: System) -> str:
        from ironbench import _core

        memory = _core.SqliteConnection(":memory:", [])
        try:
            version = memory.query("SELECT sqlite_version()")[0][0]
        finally:
            memory.close()
        return " ".join(["sqlite", str(version), *statements(shaping(system.settings))])

    def loading_system(self, system: System, folder: Path) -> System:
        return System(self.name, system.label, shaping(system.settings), Layout(str(folder)))


def _parallel(most: int, settings: dict[str, str]) -> dict[str, str]:
    """Returns the setting for threads that help a statement to sort
    (https://www.sqlite.org/pragma.html#pragma_threads)."""
    if "threads" in settings:
        raise set_twice(written("system.parallelism", most), "threads")
    if not 1 <= most <= _MOST_PARALLEL:
        raise InputError(
            written("system.parallelism", most),
            f"must be between 1 and {_MOST_PARALLEL}",
            "change the number",
        )
    return {"threads": str(most - 1)}


ENGINE = SqliteEngine()
