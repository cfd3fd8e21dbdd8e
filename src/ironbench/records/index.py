"""The index of records: an SQLite file with one row per record, so that records can be listed without opening them.

The index contains only data that are derived from the records. A row is valid only while `record.json` is still the
file from which the row was read (same inode, time of change and size), so records may be added, removed or damaged
without updating the index. The file can be deleted at any time. If it cannot be used (read-only or full disk, a file
system without locks), the same tables are created in memory.

The index uses SQLite's default rollback journal: if a writer is killed, the kernel releases its locks, and the next
reader rolls its journal back. WAL mode would need a shared-memory file in the same directory, which is not possible in
read-only directories and on network file systems. See docs/adr/0039-the-index-is-sqlite.md.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Set
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ironbench.model.record import Record, machine_of, machines_of
from ironbench.model.sample import listed
from ironbench.model.system import Choice, Load, System
from ironbench.workloads import compared

NAME = "ironbench-index.db"
VERSION = 1
"""Value of `user_version` in the file. A file with a different value is created again, so the value must be raised when
a column or its meaning changes."""
Stamp = str
"""Inode, time of change in ns, and size of a `record.json`, as text because an inode may exceed SQLite's integers."""
WAIT_S = 10.0
"""Seconds to wait for another process that is writing."""
_SETTLED_S = 0.05
"""The clock of a file system has a limited resolution. If a directory changes again within this number of seconds, its
time of change may remain the same."""
_BROKEN = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)
"""Error codes of SQLite for a file that is damaged or has different tables."""
T = TypeVar("T")


class Listed(msgspec.Struct, frozen=True, gc=False):
    """A record's row in the index. The fields are columns of the table, in the same order."""

    id: str
    series: str
    label: str
    workload: str
    cell: str
    purpose: str
    status: str
    started_at: str
    throughput: float | None
    response_time_p99_s: float | None
    """The 99th percentile. The value is None if the trial has no such metric, has too few transactions for this
    percentile, or did not sustain its rate."""
    rate: float | None
    """Target rate of an open loop, or None for a closed loop."""
    clients: int
    alike: str
    """Key that is equal for all trials of one system with the same work and the same shape of load on the same
    machine."""
    engine: str = ""
    machine: str = ""
    """Content key of the fingerprint of the server's machine. Empty if unknown."""
    tags: dict[str, str] = {}


class IndexState(msgspec.Struct, frozen=True):
    """The contents of the index about one lab, or about the runs of a results directory."""

    stamps: dict[str, Stamp]
    """For each record id, the stamp with which the record's row was stored."""
    unreadable: frozenset[str]
    """Names in the directory that are not readable records."""


_FIELDS = [name for name in Listed.__struct_fields__ if name != "tags"]
_COLUMNS = ", ".join(_FIELDS)
_SCHEMA = (
    """create table record (
        lab text not null, -- name of the lab's directory; empty: a run
        stamp text not null,
        searched text not null, -- label, id, cell and lab in lower case
        id text not null, series text, label text, workload text, cell text, purpose text, status text,
        started_at text, throughput real, response_time_p99_s real, rate real, clients integer, alike text,
        engine text, machine text,
        tags text, -- JSON
        primary key (lab, id)
    ) without rowid""",
    "create index by_series on record (lab, series, started_at)",
    "create index by_label on record (lab, label, started_at)",
    "create index by_choice on record (workload, engine, machine, status)",
    "create table unreadable (lab text not null, id text not null, primary key (lab, id)) without rowid",
    "create table directory (lab text primary key, state text not null) without rowid",
    f"pragma user_version = {VERSION}",
)
_INSERT = f"insert or replace into record values ({', '.join('?' * (len(_FIELDS) + 4))})"
_TAGS = msgspec.json.Decoder(dict[str, str])
"""Created at import, because two threads that first use a type at the same time crash (msgspec 0.22, serve/app.py)."""


def short(record: Record) -> Listed:
    """Returns the row of a record."""
    return Listed(
        id=record.id,
        series=record.series,
        label=record.system.label,
        workload=record.choice.workload,
        cell=record.cell.name,
        purpose=record.purpose,
        status=record.status.value,
        started_at=record.started_at,
        throughput=record.metrics.get("throughput"),
        response_time_p99_s=record.metrics.get("response_time_p99_s")
        if listed(record, "response_time_p99_s")
        else None,
        rate=record.cell.load.rate,
        clients=record.cell.load.clients,
        alike=alike(record.system, record.choice, record.cell.load, machines_of(record)),
        tags=record.tags,
        engine=record.system.engine,
        machine=machine_of(record),
    )


def alike(system: System, choice: Choice, load: Load, machines: tuple[str, str]) -> str:
    """Computes `Listed.alike`. `machines`: as `machines_of` returns them for a record."""
    data = msgspec.json.encode((compared(choice), system, load.shape, machines), order="sorted")
    return hashlib.blake2b(data, digest_size=8).hexdigest()


class Index:
    """The rows of a results directory: rows of its runs (`lab` is empty) and of the labs below it.

    Every call opens the file, so threads may share an index, an index survives a fork, and a deleted file is noticed.
    No call fails because of the file: if the file cannot be used, the call works in memory.
    """

    def __init__(self, results: Path) -> None:
        self._path = results / NAME
        self._memory: sqlite3.Connection | None = None
        """Database that replaces the file for the rest of this process, or None while the file is used."""
        self._lock = threading.RLock()
        self.refreshed: dict[str, Callable[[], None]] = {}
        """For each lab whose rows this process has refreshed, a function that refreshes them again."""

    def known(self, lab: str) -> IndexState:
        """Returns the part of the index that belongs to a lab."""
        return IndexState(
            dict(self.query("select id, stamp from record where lab = ?", lab)),
            frozenset(id for (id,) in self.query("select id from unreadable where lab = ?", lab)),
        )

    def refresh(
        self,
        lab: str,
        known: IndexState,
        state: str,
        stamps: Mapping[str, Stamp | None],
        read: Callable[[str], Record | None],
    ) -> None:
        """Updates the rows of a lab from its directory.

        `known` and `state` (see `state_of`) were read before the directory was listed. `stamps`: for each name in the
        directory, the stamp of the record, or None if the name is not a readable record. `read` reads a record that is
        new or has changed, and returns None if the record cannot be read.
        """
        gone = [(lab, id, stamp) for id, stamp in known.stamps.items() if stamps.get(id) != stamp]
        # Records are read before the database is locked, because reading a hundred thousand records takes seconds.
        rows, unreadable = [], set()
        for name, stamp in stamps.items():
            if stamp is not None and known.stamps.get(name) == stamp:
                continue
            if stamp is not None and (record := read(name)) is not None:
                rows.append(_values(short(record), lab, stamp))
            else:
                unreadable.add(text(name))
        changed = gone or rows or unreadable != known.unreadable
        if not changed and (not stamps or not state or self.states().get(lab) == state):
            return

        def write(database: sqlite3.Connection) -> int:
            # Only rows that are unchanged are replaced, because another process may have read a newer record in the
            # meantime.
            database.executemany("delete from record where lab = ? and id = ? and stamp = ?", gone)
            database.executemany(_INSERT, rows)
            database.execute("delete from unreadable where lab = ?", (lab,))
            database.executemany("insert into unreadable values (?, ?)", [(lab, name) for name in unreadable])
            database.execute("insert or replace into directory values (?, ?)", (lab, state))
            found: int = database.execute("select count(*) from record where lab = ?", (lab,)).fetchone()[0]
            return found

        if self._run(write, writes=True) < len(known.stamps) - len(gone) + len(rows):
            # There are too few rows: the database was replaced after `known` was read. All records are read again.
            self.refresh(lab, IndexState({}, frozenset()), "", stamps, read)

    def forget(self, labs: Set[str]) -> None:
        """Removes the rows of labs whose directories were deleted."""

        def write(database: sqlite3.Connection) -> None:
            for table in ("record", "unreadable", "directory"):
                database.executemany(f"delete from {table} where lab = ?", [(lab,) for lab in labs])

        if labs:
            self._run(write, writes=True)

    def states(self) -> dict[str, str]:
        """Returns a dict that maps each lab to the state that its directory had when its rows were refreshed."""
        return dict(self.query("select lab, state from directory"))

    def unreadable(self) -> dict[str, int]:
        """Returns a dict that maps each lab to its number of unreadable records."""
        return dict(self.query("select lab, count(*) from unreadable group by lab"))

    def rows(self, where: str, *values: str | int) -> list[tuple[str, Listed]]:
        """Returns rows, each with the name of its lab. `where`: a condition in SQL, optionally followed by `order by`
        or `limit`."""
        found = self.query(f"select lab, {_COLUMNS}, tags from record where {where}", *values)
        return [(lab, Listed(*[*fields, {} if tags == "{}" else _TAGS.decode(tags)])) for lab, *fields, tags in found]

    def count(self, where: str, *values: str | int) -> int:
        """Returns the number of rows that satisfy a condition in SQL."""
        found: int = self.query(f"select count(*) from record where {where}", *values)[0][0]
        return found

    def query(self, sql: str, *values: str | int) -> list[Any]:
        """Runs a query over the tables of `_SCHEMA`; returns its rows as tuples."""
        return self._run(lambda database: database.execute(sql, values).fetchall())

    def _run(self, work: Callable[[sqlite3.Connection], T], writes: bool = False) -> T:
        """Runs `work` in one transaction. A damaged or older file is created again. If the file cannot be used, `work`
        runs on a database in memory."""
        with self._lock:
            if self._memory is None and not writes and self._is_empty():
                self._refill()
                if self._is_empty():
                    with closing(_opened(":memory:")) as nothing:
                        return work(nothing)
            removed = False
            while self._memory is None:
                try:
                    with closing(_opened(self._path)) as database, database:
                        return work(database)
                except sqlite3.Error as error:
                    if not removed and _is_broken(error):
                        removed = True
                        self._remove()
                    else:
                        self._memory = _copied(self._path)
                if not writes:
                    self._refill()
            with self._memory:
                return work(self._memory)

    def _is_empty(self) -> bool:
        try:
            return self._path.stat().st_size == 0
        except OSError:
            return True

    def _refill(self) -> None:
        """Refreshes the rows of every directory that this process has refreshed before, because a new database contains
        none of them."""
        directories, self.refreshed = self.refreshed, {}
        for refresh in directories.values():
            refresh()

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            # The journal is removed first, because SQLite would apply it to the next file of that name.
            self._path.with_name(f"{NAME}-journal").unlink(missing_ok=True)
            self._path.unlink(missing_ok=True)


def _is_broken(error: sqlite3.Error) -> bool:
    try:
        return error.sqlite_errorcode & 0xFF in _BROKEN
    # Errors without a code are raised by Python's sqlite3 module, for example for text that is not UTF-8, or by
    # `_opened`.
    except AttributeError:
        return True


def _copied(path: Path) -> sqlite3.Connection:
    """Creates a database in memory, with the rows of the file if they can be read."""
    memory = _opened(":memory:")
    try:
        with closing(_opened(path)) as file:
            file.backup(memory)
        memory.execute("select count(*) from record").fetchone()
    except sqlite3.Error:
        memory.close()
        return _opened(":memory:")
    return memory


def _opened(path: Path | str) -> sqlite3.Connection:
    """Opens a database and creates its tables if it is empty. Raises sqlite3.Error."""
    database = sqlite3.connect(path, timeout=WAIT_S, isolation_level="IMMEDIATE", check_same_thread=False)
    try:
        if _version(database) == 0:
            with database:
                # Two processes may create the database at the same time, but only one of them creates the tables.
                database.execute("begin exclusive")
                if _version(database) == 0:
                    for statement in _SCHEMA:
                        database.execute(statement)
            if isinstance(path, Path):
                _remove_former(path.with_name("index.json"))
        if _version(database) != VERSION:
            raise sqlite3.DatabaseError("made by another version")
    except BaseException:
        database.close()
        raise
    return database


def _remove_former(path: Path) -> None:
    """Removes the index of versions that did not use SQLite."""
    with contextlib.suppress(OSError):
        with path.open("rb") as file:
            ours = re.match(rb'{"version":\d+,"rows":{', file.read(32))
        if ours:
            path.unlink()


def _version(database: sqlite3.Connection) -> int:
    found: int = database.execute("pragma user_version").fetchone()[0]
    return found


def _values(row: Listed, lab: str, stamp: Stamp) -> tuple[Any, ...]:
    searched = f"{row.label}\n{row.id}\n{row.cell}\n{lab}".lower()
    fields = [getattr(row, name) for name in _FIELDS]
    return (lab, stamp, searched, *fields, msgspec.json.encode(row.tags).decode())


def text(name: str) -> str:
    """Returns a file name as SQLite can store it: bytes that are not UTF-8 become escapes."""
    return name.encode(errors="backslashreplace").decode()


def stamp_of(trials: Path, name: str) -> Stamp | None:
    """Returns the stamp of a record. Returns None if there is no `record.json`."""
    try:
        seen = os.stat(f"{os.fspath(trials)}/{name}/record.json")  # noqa: PTH116 - `Path` objects would double the time
    except OSError:
        return None
    return f"{seen.st_ino} {seen.st_mtime_ns} {seen.st_size}"


def names_in(trials: Path) -> list[str]:
    """Lists the names in a directory of trials, without records that are being written."""
    with contextlib.suppress(OSError), os.scandir(trials) as entries:
        return [entry.name for entry in entries if not entry.name.startswith(".")]
    return []


def state_of(trials: Path) -> str:
    """Returns a text that changes whenever a name in the directory is added or removed. Returns an empty text if the
    directory has changed within the last `_SETTLED_S` seconds, because a further change could then remain unnoticed."""
    try:
        found = trials.stat()
    except OSError:
        return "missing"
    return "" if time.time() - found.st_mtime < _SETTLED_S else f"{found.st_ino} {found.st_mtime_ns}"
