"""Imports the user's own data into MariaDB. The data are SQL as written by mariadb-dump. The statements are sent one by
one over ironbench's connection."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ironbench.engines.data_import import DatabaseCopies, DataImport, Dump, RestoreResult, Show
from ironbench.engines.dialect import listed
from ironbench.engines.mariadb import installation, sql_text
from ironbench.engines.mariadb.copies import DEFINER, HOLDING_ROWS, MariadbCopies, quoted
from ironbench.engines.mariadb.dialect import CHECKPOINT
from ironbench.engines.mariadb.session import MariadbSession
from ironbench.engines.mariadb.sql_text import MysqlSqlText
from ironbench.errors import FailureError, InputError, shortened
from ironbench.model.redact import redacted_sql
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session
from ironbench.model.system import System

if TYPE_CHECKING:
    from ironbench._core import MysqlConnection

_GROWTH = 1.5
_MAKES = re.compile(rb"(?:/\*M?!\d*\s*)?CREATE\b", re.IGNORECASE)
_NEW_COLLATIONS_SINCE = (11, 4, 5)
"""First version that accepts the names of MySQL's newer collations (MDEV-20912)."""
_UNKNOWN_COLLATION = 1273


class MariadbDataImport(DataImport):
    dumps = "SQL written by mariadb-dump or mysqldump"
    setup = True
    databases = True

    def copies(self, system: System, secrets: Secrets) -> DatabaseCopies:
        return MariadbCopies(system, secrets)

    def examined(self, system: System, dump: Path) -> Dump:
        subject = f"dump {dump}"
        if dump.is_dir():
            raise InputError(subject, "is a directory", "give the path of the file that mariadb-dump wrote")
        text = _examined(dump, dump.stat().st_mtime_ns)
        if system.dsn is None and text.collations:
            version = installation.find(system.settings.get("bin")).version
            if tuple(int(part) for part in re.findall(r"\d+", version)[:3]) < _NEW_COLLATIONS_SINCE:
                raise _lacks(subject, text, text.collations, version)
        kind = f"SQL dump of {text.origin}" if text.origin else "SQL dump"
        kind += "" if text.has_end_mark else ", without an end mark"
        return Dump(kind, "ironbench", int(dump.stat().st_size * _GROWTH))

    def examined_setup(self, file: Path, dump: Path | None = None) -> None:
        _examined_setup(file, dump)

    def examined_script(self, name: str, commands: Sequence[str]) -> None:
        from ironbench._core import SqlScanner

        for number, command in enumerate(commands, 1):
            # a command may contain several statements
            for _, _, begins, sql in SqlScanner("mariadb").feed(command.encode(), True):
                sql_text.refuse_within(name, f"command {number}", sql[begins:].decode(errors="replace"))

    def restored(self, session: Session, dump: Path, jobs: int, show: Show) -> RestoreResult:
        subject, text = f"dump {dump}", _examined(dump, dump.stat().st_mtime_ns)
        if unknown := [name for name in sorted(text.collations) if not _is_collation_known(session, name)]:
            raise _lacks(subject, text, unknown, str(session.facts().get("version", "")))
        return RestoreResult(left_out=_run(session, dump, text, show, own=False), has_end_mark=text.has_end_mark)

    def set_up(self, session: Session, file: Path, show: Show, dump: Path | None = None) -> Mapping[str, int]:
        return _run(session, file, _examined_setup(file, dump), show, own=True)

    def finish_load(self, session: Session) -> None:
        tables = session.query(
            "select table_name from information_schema.tables where table_schema = database() "
            f"and table_type in ({listed(HOLDING_ROWS)})"
        )
        for (table,) in tables:
            session.query(f"analyze table {quoted(table or '')}")
        with suppress(FailureError):  # the session refuses this on a server that ironbench did not start
            session.query(CHECKPOINT)


@lru_cache(maxsize=4)
def _examined(dump: Path, mtime_ns: int) -> MysqlSqlText:
    """Examines a dump. Plan and load share the cached result, so that a large file is read only once. `mtime_ns`:
    modification time, which is in the cache key so that a changed file is read again."""
    return sql_text.examined(dump, f"dump {dump}", own=False)


def _examined_setup(file: Path, dump: Path | None) -> MysqlSqlText:
    database = _examined(dump, dump.stat().st_mtime_ns).database if dump is not None else ""
    return sql_text.examined(file, f"setup file {file}", own=True, database=database)


def _is_collation_known(session: Session, collation: str) -> bool:
    try:
        session.query(f"select convert('' using {collation.partition('_')[0]}) collate {collation}")
    except FailureError as error:
        if getattr(error, "number", 0) == _UNKNOWN_COLLATION:
            return False
        raise
    return True


def _lacks(subject: str, text: MysqlSqlText, collations: Collection[str], version: str) -> InputError:
    cause = f"made by {text.origin or 'MySQL 8'}: MariaDB {version} lacks collation {', '.join(sorted(collations))}"
    first = sorted(collations)[0]
    return InputError(
        subject,
        cause,
        f"use MariaDB 11.4.5 or later, or replace the collation: sed s/{first}/utf8mb4_unicode_ci/g DUMP > NEW",
    )


def _run(session: Session, file: Path, text: MysqlSqlText, show: Show, *, own: bool) -> Counter[str]:
    """Executes the file. Returns the number of skipped statements of each kind. Raises a FailureError that contains the
    line, the statement and the reason."""
    if not isinstance(session, MariadbSession):
        raise TypeError(session)
    connection = session.as_client()  # the user's file must run with a client's usual session settings
    try:
        left_out = _send_statements(connection, file, text, show, own=own)
        if connection.query("select @@in_transaction")[0][0] == "1":
            cause = "the file ends with an open transaction, so its changes would be lost"
            raise FailureError(str(file), cause, "complete the file, or add COMMIT")
        return left_out
    finally:
        connection.close()


def _send_statements(
    connection: MysqlConnection, file: Path, text: MysqlSqlText, show: Show, *, own: bool
) -> Counter[str]:
    whole, done = max(1, file.stat().st_size), 0
    left_out: Counter[str] = Counter()
    for statement in sql_text.statements(file, str(file), text, own=own):
        if statement.left_out:
            left_out[statement.left_out] += 1
            continue
        sql = statement.text
        if _MAKES.match(sql):
            sql = DEFINER.sub("", sql.decode("utf-8", "surrogateescape"), count=1).encode("utf-8", "surrogateescape")
        try:
            connection.execute(sql)
        except FailureError as error:
            what = shortened(redacted_sql(" ".join(sql[:2000].decode(errors="replace").split())), 120)
            where = f"line {statement.line}: {error.cause} (in: {what})"
            raise FailureError(str(file), where, "correct the file") from None
        done += len(sql)
        show(min(0.9, 0.9 * done / whole), f"line {statement.line}")
    del left_out["database"]
    return left_out
