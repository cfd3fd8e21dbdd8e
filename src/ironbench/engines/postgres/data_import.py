"""The user's own data in PostgreSQL: dumps by its own programs, copies by CREATE DATABASE."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ironbench import units
from ironbench.engines.administration import DENIED
from ironbench.engines.data_import import DatabaseCopies, DataImport, Dump, Show
from ironbench.engines.own_databases import is_ours
from ironbench.engines.postgres import dsn as addresses
from ironbench.engines.postgres import dumps, installation
from ironbench.engines.postgres.cluster import environment
from ironbench.engines.postgres.copies import PostgresCopies
from ironbench.engines.postgres.dialect import CHECKPOINT
from ironbench.engines.postgres.dumps import PgDump
from ironbench.errors import FailureError, InputError, shortened, written
from ironbench.model.redact import redacted_sql
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session
from ironbench.model.system import System
from ironbench.process import programs, scratch
from ironbench.words import counted, listed

_LEFT_OUT = (
    # Roles of the user's server are not here, and none of this changes how fast statements are.
    *("--no-owner", "--no-privileges", "--no-comments", "--no-publications", "--no-subscriptions"),
    *("--no-security-labels", "--no-tablespaces"),
)
_OBSERVING = (
    *("pg_stat_statements", "pg_buffercache", "pgstattuple", "pg_visibility", "pg_freespacemap", "pageinspect"),
    *("pgrowlocks", "pg_walinspect", "pg_prewarm", "amcheck", "pg_stat_kcache", "pg_qualstats", "pg_wait_sampling"),
)
"""Extensions that look at a server, and of which tables and functions of an application have nothing."""
_BY_OTHERS = re.compile(
    r"(ALTER .* OWNER TO |GRANT |REVOKE |ALTER DEFAULT PRIVILEGES |COMMENT ON |SET default_tablespace"
    rf"|CREATE EXTENSION (?:IF NOT EXISTS )?\"?(?:{'|'.join(_OBSERVING)})\b"
    r"|SET transaction_timeout|CREATE PUBLICATION|CREATE SUBSCRIPTION|ALTER PUBLICATION)",
    re.IGNORECASE | re.DOTALL,
)
"""Statements of a plain dump that may fail: what `_LEFT_OUT` leaves out of others, and settings of newer servers."""
_AVAILABLE = """
    select name, bool_or(trusted) or (select rolsuper from pg_roles where rolname = current_user)
      from pg_available_extension_versions group by name
"""
"""Each with whether the role may make it: of those that are trusted, the owner of a database may."""
_EVERYWHERE = ("postgres", "template1")
"""Databases that initdb makes."""
_NO_TABLE = "42P01"
_SCHEMAS = """
    select quote_ident(schemaname) from pg_tables
     where schemaname not in ('pg_catalog', 'information_schema') and not schemaname = any (current_schemas(false))
     group by 1 order by count(*) desc limit 3
"""
"""Where tables are that a name without its schema does not find. A dump without --create does not hold what
`ALTER DATABASE … SET search_path` said."""
_TIMEOUT = 'unrecognized configuration parameter "transaction_timeout"'
"""Every pg_restore since 17 sets it, older servers do not know it, and nothing depends on it."""
_NO_DUMP = "SQL text, not written by pg_dump"
"""A plain dump says from which version it came."""
_ERROR = re.compile(r"(?:ERROR|FATAL|PANIC):  |pg_restore: error: |psql: error: ")
_STATEMENT = re.compile(r"(?:STATEMENT:  |Command was: )(.*)")


class PostgresDataImport(DataImport):
    dumps = "a dump of pg_dump: custom, directory, tar or plain SQL"
    setup = True
    databases = templates = True

    def examined(self, system: System, dump: Path) -> Dump:
        found, left_out = dumps.read(dump), []
        if system.dsn is None:
            programs = installation.find(system.settings.get("bin"))
            self._refuse_newer(found, programs.major)
            if (there := installation.extensions(programs)) is not None:
                left_out = _left_out(found, there)
        without = f" ({_without(left_out)})" if left_out else ""
        origin = f" of version {found.version}" if found.version else ""
        schemas = (
            f", {counted(len(found.schemas), 'schema')} ({shortened(', '.join(found.schemas), 60)})"
            if found.schemas
            else ""
        )
        tool = "psql" if found.form == "plain" else "pg_restore"
        kind = f"{found.form} dump{origin}" if found.form != "plain" or found.version else _NO_DUMP
        return Dump(f"{kind}{schemas}{without}", f"{tool} {dumps.tools().version}", dumps.data_bytes(found))

    def version(self, system: System) -> str:
        return "" if system.dsn is not None else installation.find(system.settings.get("bin")).version

    def examined_setup(self, file: Path) -> None:
        dumps.refuse_outside(file, f"setup file {file}")

    def restored(self, session: Session, dump: Path, jobs: int, show: Show) -> str:
        source = dumps.read(dump)
        given = is_ours(session.target()["connection"]["database"])
        self._refuse_newer(source, int(session.query("show server_version_num")[0][0] or 0) // 10000, given)
        rows = session.query(_AVAILABLE)
        makeable = {name or "" for name, may in rows if may == "t"}
        left_out = _left_out(source, {name or "" for name, _ in rows}, makeable, given)
        if source.form == "plain":
            _run_text(session, dump, show, tolerant=True)
            return _without(left_out)
        parallel = ("--jobs", str(jobs)) if source.form in ("custom", "directory") and jobs > 1 else ()
        connection = session.target()["connection"]
        program = dumps.tools(connection["sslmode"]).program("pg_restore")
        words = [program, *_LEFT_OUT, "--verbose", *parallel, f"--dbname={connection['database']}"]
        with scratch.folder() as folder:
            if left_out:
                (folder / "list").write_text(dumps.contents(dump, left_out))
                words.append(f"--use-list={folder / 'list'}")
            _Feed(f"dump {dump}", session, show, source.items).run([*words, str(dump)])
        return _without(left_out)

    def set_up(self, session: Session, file: Path, show: Show) -> None:
        dumps.refuse_outside(file, f"setup file {file}")
        _run_text(session, file, show, tolerant=False)

    def settle(self, session: Session) -> None:
        # FREEZE marks rows as visible to all now, which the first reader of each page would have to do and write.
        session.query("vacuum (freeze, analyze)")
        try:
            session.query(CHECKPOINT)
        except FailureError as error:
            if error.sqlstate != DENIED:
                raise

    def way_out(self, session: Session, error: FailureError) -> str:
        if error.sqlstate != _NO_TABLE or not (schemas := [row[0] or "" for row in session.query(_SCHEMAS)]):
            return ""
        path = written("system.set", f"search_path={','.join([*schemas, 'public'])}")
        return (
            f"there are tables in {listed(schemas)}: write {schemas[0]}.TABLE, or set {path}; on a running server "
            f"{written('system.dsn')} …?options=-c%20search_path%3D{schemas[0]}"
        )

    def template_of(self, dsn: str) -> tuple[str, str]:
        address, _ = addresses.parse(dsn, {})
        if address.database in _EVERYWHERE:
            return "", dsn
        return address.database, replace(address, database=_EVERYWHERE[0]).text()

    def copies(self, system: System, secrets: Secrets) -> DatabaseCopies:
        return PostgresCopies(system, secrets)

    @staticmethod
    def _refuse_newer(dump: PgDump, major: int, given: bool = False) -> None:
        """`given`: the server was running already."""
        if dump.major > major:
            other = f"give {written('system.set', 'bin=DIR')}"
            if given:
                dsn = written("system.dsn")
                other = f"name one by {dsn}, or leave {dsn} out: ironbench then starts a server of its own"
            raise InputError(
                f"dump {dump.path}",
                f"it came from PostgreSQL {dump.version}, and the server is PostgreSQL {major}: an older one",
                f"use a server of version {dump.major} or later: {other}",
            )


def _left_out(
    dump: PgDump, there: Collection[str], makeable: Collection[str] | None = None, given: bool = False
) -> list[str]:
    """Extensions of the dump that are not there, or that the role may not make, and that nothing in it can need.
    InputError for others, before anything of the dump is in: an extension's objects are all over it."""
    missing = [name for name in dump.extensions if name not in there]
    where = "" if given else f": {written('system.set', 'bin=DIR')} starts one (Debian: package postgresql-contrib)"
    if needed := [name for name in missing if name not in _OBSERVING]:
        raise InputError(
            f"dump {dump.path}",
            f"it needs the extension {', '.join(needed)}, which this PostgreSQL does not have",
            f"use a PostgreSQL that has it{where}, or drop the extension before the dump is made",
        )
    denied = [] if makeable is None else [name for name in dump.extensions if name not in makeable]
    return list(dict.fromkeys([*missing, *(name for name in denied if name in _OBSERVING)]))


def _without(left_out: Sequence[str]) -> str:
    return f"without {', '.join(left_out)}, which only observes" if left_out else ""


def _run_text(session: Session, file: Path, show: Show, *, tolerant: bool) -> None:
    connection = session.target()["connection"]
    words = [dumps.tools(connection["sslmode"]).program("psql"), "--no-psqlrc", "--quiet", "--echo-errors"]
    words += [f"--dbname={connection['database']}", f"--file={file}"]
    feed = _Feed(str(file), session, show, 0, _BY_OTHERS if tolerant else None)
    feed.run(words)


_OWNERS = (
    f"the tables of a template keep their owner: let {written('system.dsn')} name that role, or start from a dump "
    f"({written('data.dump')}), whose tables are the role's own"
)


def _way_out(cause: str) -> str:
    """Of an error while a file is loaded."""
    if "must be owner of" in cause:
        return _OWNERS
    usual = "nothing of it is measured; correct the file, or the server"
    return f"is it SQL for PostgreSQL? {usual}" if "syntax error" in cause else usual


class _Feed:
    """Runs a program on a session's database and listens to it: the first error that matters ends it."""

    def __init__(
        self, subject: str, session: Session, show: Show, items: int, harmless: re.Pattern[str] | None = None
    ) -> None:
        self._subject, self._session, self._show = subject, session, show
        self._items, self._done, self._harmless = items, 0, harmless
        self._error = ""
        """Heard, and not yet known whether it matters: its statement follows."""
        self._before = session.query("select pg_database_size(current_database())")[0][0]

    def run(self, words: Sequence[str]) -> None:
        """FailureError with the program's own words."""
        connection = self._session.target()["connection"]
        status = programs.streamed(words, _environment(connection), self._heard, self._look)
        self._settle("")
        if status not in (0, 1):  # 1: errors, each of which was heard and did not matter; psql's 2: connection lost
            raise FailureError(self._subject, f"{Path(words[0]).name} ended with {status}", "look at the server's log")

    def _heard(self, line: str) -> None:
        if self._error:
            statement = _STATEMENT.search(line)
            if statement is None and not _ERROR.search(line):
                return  # LINE, DETAIL, CONTEXT
            self._settle(statement[1] if statement else "")
            if statement:
                return
        if _ERROR.search(line) and "errors ignored on restore" not in line:
            self._error = line
        elif "finished item" in line or "processing data for table" in line:
            self._done += 1

    def _settle(self, statement: str) -> None:
        error, self._error = self._error, ""
        if not error or _TIMEOUT in error:
            return
        if statement and self._harmless is not None and self._harmless.match(statement):
            return
        what = f" (in: {redacted_sql(statement)[:200]})" if statement else ""
        cause = re.sub(r"^.*?(?:could not execute query: )?(?:ERROR|FATAL|error): +", "", error)
        raise FailureError(self._subject, f"{cause}{what}", _way_out(cause))

    def _look(self) -> None:
        size = int(self._session.query("select pg_database_size(current_database())")[0][0] or 0)
        items = f", {self._done} of {self._items} items" if self._items else ""
        self._show(min(0.9, self._done / self._items) if self._items else 0.0, f"{units.stored(size)}{items}")


def _environment(connection: dict[str, Any]) -> dict[str, str]:
    """The password is in no command line, which others may read."""
    given = {
        "PGHOST": connection["host"],
        "PGPORT": str(connection["port"]),
        "PGUSER": connection["user"],
        "PGPASSWORD": connection["password"] or "",
        "PGOPTIONS": dict(connection["options"]).get("options", ""),
        "PGAPPNAME": "ironbench load",
        "PGCLIENTENCODING": "UTF8",
    }
    given |= addresses.for_programs(connection)
    return environment() | {name: value for name, value in given.items() if value}
