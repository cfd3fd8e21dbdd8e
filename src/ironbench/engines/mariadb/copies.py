"""Databases that ironbench creates on an existing MariaDB server. The names identify the databases as ironbench's
(`engines.own_databases`).

MariaDB cannot copy a database. Without access to the files, the closest alternative is to recreate each table from its
DDL and to fill it on the server with INSERT … SELECT. If neither uniqueness nor references are checked, InnoDB loads an
empty table in bulk and sorts each index first (manual, "InnoDB Bulk Insert").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from queue import SimpleQueue
from typing import TYPE_CHECKING

from ironbench.engines.administration import DENIED, MARK
from ironbench.engines.data_import import Copy, DatabaseCopies
from ironbench.engines.mariadb import dsn
from ironbench.engines.mariadb.session import MariadbSession
from ironbench.engines.own_databases import is_ours, new_name
from ironbench.errors import FailureError, InputError, IronbenchError, written
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session
from ironbench.model.system import System
from ironbench.units import stored

if TYPE_CHECKING:
    from ironbench._core import MysqlConnection

NOTE = "ironbench_note"
"""Name of a table in a database that is the template for the databases of trials. When the data are complete, the table
contains their content key."""
HOLDING_ROWS = ("BASE TABLE", "SYSTEM VERSIONED")
"""Types of tables with rows, from information_schema. A copy of a system-versioned table contains only the current
rows, as a dump does."""
_MOST_CONNECTIONS = 4
_AGAIN_S = 0.1
_MODES = "set session sql_mode = 'NO_AUTO_VALUE_ON_ZERO', foreign_key_checks = 0, unique_checks = 0"
DEFINER = re.compile(
    r"(/\*!\d+\s+)?\bDEFINER\s*=\s*(?:`[^`]*`|'[^']*'|\w+)(?:@(?:`[^`]*`|'[^']*'|[\w.%]+))?\s*(?(1)\*/)", re.I
)
"""Pattern of DEFINER clauses, which are removed. The users that they name may not exist on this server, and naming
another user requires a privilege."""
_MADE = """
    select schema_name, coalesce((select sum(data_length + index_length) from information_schema.tables
                                   where table_schema = schema_name), 0),
           exists (select 1 from information_schema.tables where table_schema = schema_name and table_name = '{note}')
      from information_schema.schemata where schema_name like 'ironbench\\\\_%' order by 1
"""
_COLUMNS = """
    select group_concat('`', replace(column_name, '`', '``'), '`' order by ordinal_position separator ', ')
      from information_schema.columns
     where table_schema = '{name}' and table_name = '{table}' and coalesce(generation_expression, '') = ''
"""


def made(session: Session) -> dict[str, tuple[int, str]]:
    """Returns the databases of ironbench on this server that the user can see. For each name, the result contains the
    size in bytes and the content key. The key is "" if the database is incomplete."""
    databases = {}
    for name, size, noted in session.query(_MADE.format(note=NOTE)):
        if name and is_ours(name):
            key = session.query(f"select max(note) from `{name}`.{NOTE}")[0][0] if noted == "1" else ""
            databases[name] = int(float(size or 0)), key or ""
    return databases


def drop(session: Session, name: str) -> None:
    session.query(f"drop database if exists `{name}`")


def require_databases(session: Session, subject: str, role: str) -> None:
    """Raises InputError if the user may not create databases. The only reliable test is to create a database. The name
    identifies this database as ironbench's."""
    name = new_name()
    try:
        session.query(f"create database `{name}`")
        session.query(f"create table `{name}`.a (a int); drop database `{name}`")
    except FailureError as error:
        with suppress(IronbenchError):
            drop(session, name)
        if error.sqlstate != DENIED:
            raise
        cause = "lacks the privilege to create databases, which is required because trials run on copies of your data"
        grant = "GRANT ALL PRIVILEGES ON `ironbench\\_%`.* TO " + role
        raise InputError(subject, f"user {role} of the server at {written('system.dsn')} {cause}", grant) from None


class MariadbCopies(DatabaseCopies):
    _session: MariadbSession

    def __init__(self, system: System, secrets: Secrets) -> None:
        self._address, _ = dsn.parse(system.dsn or "", {})
        # This session stays open and has the current database selected. The `cleanup` of another user does not drop
        # such a database, so the database also survives between two trials.
        self._session = MariadbSession(self._address, secrets)

    def kept(self, key: str) -> Copy | None:
        copies = [Copy(name, size, "kept") for name, (size, known) in made(self._session).items() if known == key]
        if copies:
            self._session.query(f"use `{copies[0].name}`")
        return copies[0] if copies else None

    def new(self, key: str, template: str = "") -> Copy:
        name, how = new_name(), "empty"
        words = ""
        if template:
            rows = self._session.query(
                "select default_character_set_name, default_collation_name from information_schema.schemata "
                f"where schema_name = '{template}'"
            )
            if not rows:
                cause = "the copy that trials start from was dropped"
                raise FailureError(
                    f"database {template}", cause, "start the run or lab again: ironbench will recreate the copy"
                )
            words = f" character set {rows[0][0]} collate {rows[0][1]}"
        self._session.query(f"create database `{name}`{words}")
        if template:
            try:
                self._session.query(f"use `{template}`")
                how = f"copied table by table ({stored(self._copied(template, name))})"
            except BaseException:
                with suppress(IronbenchError):
                    self.drop(name)
                raise
        else:
            self._session.query(f"use `{name}`")
        return Copy(name, 0, how)

    def complete(self, copy: Copy, key: str) -> Copy:
        self._session.query(f"create table `{copy.name}`.{NOTE} (note varchar(1000)) comment = '{MARK}'")
        self._session.query(f"insert into `{copy.name}`.{NOTE} values ({_text(key)})")
        return replace(copy, bytes=made(self._session)[copy.name][0])

    def drop(self, name: str) -> None:
        if is_ours(name):
            drop(self._session, name)

    def with_database(self, system: System, name: str) -> System:
        address, _ = dsn.parse(system.dsn or "", {})
        return replace(system, dsn=replace(address, database=name).text())

    def _copied(self, source: str, name: str) -> int:
        """Copies everything except events, because events would run during trials. Returns the size of the tables in
        bytes."""
        kinds: dict[str, list[tuple[str, int]]] = {}
        rows = self._session.query(
            "select table_type, table_name, coalesce(data_length + index_length, 0) from information_schema.tables "
            f"where table_schema = '{source}' and table_name <> '{NOTE}' order by 3 desc"
        )
        for kind, table, size in rows:
            kinds.setdefault(kind or "", []).append((table or "", int(size or 0)))
        tables = [table for kind in HOLDING_ROWS for table in kinds.get(kind, [])]
        with closing(self._line(source)) as line:
            for sequence, _ in kinds.get("SEQUENCE", []):
                _copy_sequence(line, source, name, sequence)
            texts = [str(line.query(f"show create table {quoted(table)}")[0][1]) for table, _ in tables]
            line.query(f"use `{name}`")
            for text in texts:
                line.query(text)
        self._fill(source, name, [table for table, _ in tables])
        with closing(self._line(source)) as line:
            programs = [*_triggers(line, source), *_routines(line, source)]
            views = [str(line.query(f"show create view {quoted(view)}")[0][1]) for view, _ in kinds.get("VIEW", [])]
            line.query(f"use `{name}`")
            for mode, text in programs:
                line.query(f"set session sql_mode = {_text(mode)}")
                line.query(DEFINER.sub("", text, count=1))
            line.query(_MODES)
            _make_views(line, [DEFINER.sub("", text, count=1).replace(f"`{source}`.", "") for text in views])
        return sum(size for _, size in tables)

    def _fill(self, source: str, name: str, tables: Sequence[str]) -> None:
        """Fills several tables in parallel. The first failure cancels the other statements. An interrupt also cancels
        them, although only the main thread receives it."""
        with ExitStack() as held:
            lines = [held.enter_context(closing(self._line(name))) for _ in tables[:_MOST_CONNECTIONS]]
            free: SimpleQueue[MysqlConnection] = SimpleQueue()
            for line in lines:
                free.put(line)

            def filled(table: str) -> None:
                line = free.get()
                try:
                    _filled(line, source, table)
                finally:
                    free.put(line)

            pool = held.enter_context(ThreadPoolExecutor(max(1, len(lines))))
            filling = [pool.submit(filled, table) for table in tables]
            try:
                for one in wait(filling, return_when=FIRST_EXCEPTION).done:
                    one.result()
            except BaseException:
                _end(filling, lines)
                raise

    def _line(self, database: str) -> MysqlConnection:
        line = self._session.as_client()
        line.query(_MODES)
        line.query("set session group_concat_max_len = 1000000")
        line.query(f"use `{database}`")
        return line


def _filled(line: MysqlConnection, source: str, table: str) -> None:
    columns = line.query(_COLUMNS.format(name=source, table=table.replace("'", "''")))[0][0]
    it = quoted(table)
    if columns:
        line.query(f"insert into {it} ({columns}) select {columns} from `{source}`.{it}")
    # Without this statement, the server would update the statistics at some later time, possibly during a trial.
    line.query(f"analyze table {it}")


def _end(filling: Sequence[Future[None]], lines: Sequence[MysqlConnection]) -> None:
    """Cancels all statements and waits until none is running. Repeats the cancellation, because it has no effect
    between two statements."""
    for one in filling:
        one.cancel()
    while wait(filling, _AGAIN_S).not_done:
        for line in lines:
            with suppress(IronbenchError):
                line.cancel()


def _copy_sequence(line: MysqlConnection, source: str, name: str, sequence: str) -> None:
    it = quoted(sequence)
    text = str(line.query(f"show create sequence {it}")[0][1])
    following = line.query(f"select next_not_cached_value from {it}")[0][0]
    line.query(f"use `{name}`")
    line.query(text)
    line.query(f"alter sequence {it} restart with {following}")
    line.query(f"use `{source}`")


def _triggers(line: MysqlConnection, source: str) -> list[tuple[str, str]]:
    """Returns the SQL mode and the text of each trigger. Triggers for the same event are in the order in which they
    fire."""
    names = line.query(
        f"select trigger_name from information_schema.triggers where trigger_schema = '{source}' "
        "order by event_object_table, event_manipulation, action_timing, action_order"
    )
    rows = [line.query(f"show create trigger {quoted(str(name))}")[0] for (name,) in names]
    return [(str(row[1]), str(row[2])) for row in rows]


def _routines(line: MysqlConnection, source: str) -> list[tuple[str, str]]:
    routines = line.query(
        "select routine_type, routine_name from information_schema.routines "
        f"where routine_schema = '{source}' and routine_type in ('PROCEDURE', 'FUNCTION')"
    )
    rows = [line.query(f"show create {kind} {quoted(str(name))}")[0] for kind, name in routines]
    if any(row[2] is None for row in rows):
        cause = "the user lacks the privilege to read the body of a routine"
        raise FailureError(f"database {source}", cause, "GRANT SELECT ON mysql.proc TO …")
    return [(str(row[1]), str(row[2])) for row in rows]


def _make_views(line: MysqlConnection, texts: Sequence[str]) -> None:
    """Creates each view after the views that it uses."""
    waiting = list(texts)
    while waiting:
        left, failure = [], None
        for text in waiting:
            try:
                line.query(text)
            except FailureError as error:
                left.append(text)
                failure = error
        if failure is not None and len(left) == len(waiting):
            raise failure
        waiting = left


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
