"""Imports the user's own data into PostgreSQL. Dumps are restored with PostgreSQL's programs. Databases are copied with
CREATE DATABASE."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ironbench.engines.administration import DENIED
from ironbench.engines.data_import import DatabaseCopies, DataImport, Dump, RestoreResult, Show
from ironbench.engines.own_databases import is_ours
from ironbench.engines.postgres import dsn as addresses
from ironbench.engines.postgres import dump_contents, dumps, installation, psql_text
from ironbench.engines.postgres.copies import PostgresCopies
from ironbench.engines.postgres.dialect import CHECKPOINT
from ironbench.engines.postgres.dumps import PgDump
from ironbench.engines.postgres.harmless import OBSERVING
from ironbench.engines.postgres.restore_programs import PgRestore, Psql
from ironbench.errors import FailureError, InputError, shortened, written
from ironbench.host import scratch
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session
from ironbench.model.system import System
from ironbench.words import counted, listed

_LEFT_OUT = (
    # The roles of the user's server do not exist here. Nothing that these options omit affects how fast statements are.
    *("--no-owner", "--no-privileges", "--no-comments", "--no-publications", "--no-subscriptions"),
    *("--no-security-labels", "--no-tablespaces"),
)
_AVAILABLE = """
    select name, bool_or(trusted) or (select rolsuper from pg_roles where rolname = current_user)
      from pg_available_extension_versions group by name
"""
"""Query that returns, for each extension, whether the role may create it. The database's owner can create trusted
extensions."""
_EVERYWHERE = ("postgres", "template1")
"""Databases that initdb creates in every cluster."""
_NO_TABLE = "42P01"
_SCHEMAS = """
    select quote_ident(schemaname) from pg_tables
     where schemaname not in ('pg_catalog', 'information_schema') and not schemaname = any (current_schemas(false))
     group by 1 order by count(*) desc limit 3
"""
"""Query for schemas that contain tables but are not in the search path. A dump that was made without --create does not
set the search path of its database."""
_NO_DUMP = "SQL file, not written by pg_dump"
"""Description of an SQL file that names no server version. A dump written by pg_dump always names one."""


class PostgresDataImport(DataImport):
    dumps = "pg_dump output: custom, directory, tar or plain SQL"
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
        kind += "" if found.has_end_mark else ", without an end mark"
        return Dump(f"{kind}{schemas}{without}", f"{tool} {dumps.tools().version}", dumps.data_bytes(found))

    def version(self, system: System) -> str:
        return "" if system.dsn is not None else installation.find(system.settings.get("bin")).version

    def examined_setup(self, file: Path, dump: Path | None = None) -> None:
        psql_text.examined(file, f"setup file {file}")

    def restored(self, session: Session, dump: Path, jobs: int, show: Show) -> RestoreResult:
        source = dumps.read(dump)
        given = is_ours(session.target()["connection"]["database"])
        self._refuse_newer(source, int(session.query("show server_version_num")[0][0] or 0) // 10000, given)
        rows = session.query(_AVAILABLE)
        makeable = {name or "" for name, may in rows if may == "t"}
        left_out = _left_out(source, {name or "" for name, _ in rows}, makeable, given)
        if source.text is not None:
            psql = Psql(str(dump), session, show, file=dump, text=source.text)
            psql.load()
            return self._compared(session, source, psql.left_out, _without(left_out))
        parallel = ("--jobs", str(jobs)) if source.form in ("custom", "directory") and jobs > 1 else ()
        connection = session.target()["connection"]
        program = dumps.tools(connection["sslmode"]).program("pg_restore")
        words = [program, *_LEFT_OUT, "--verbose", *parallel, f"--dbname={connection['database']}"]
        with scratch.folder() as folder:
            if left_out:
                (folder / "list").write_text(dumps.contents(dump, left_out))
                words.append(f"--use-list={folder / 'list'}")
            program_run = PgRestore(f"dump {dump}", session, show, items=source.items)
            program_run.run([*words, str(dump)])
        return self._compared(session, source, program_run.left_out, _without(left_out))

    @staticmethod
    def _compared(session: Session, source: PgDump, left_out: Mapping[str, int], without: str) -> RestoreResult:
        rows = source.text.rows if source.text is not None and source.text.written_by else {}
        objects = dump_contents.compared(session, f"dump {source.path}", source.entries, rows)
        return RestoreResult(objects, dict(left_out), without, source.has_end_mark)

    def set_up(self, session: Session, file: Path, show: Show, dump: Path | None = None) -> Mapping[str, int]:
        text = psql_text.examined(file, f"setup file {file}")
        psql = Psql(str(file), session, show, file=file, text=text, own=not text.written_by)
        psql.load()
        return psql.left_out

    def finish_load(self, session: Session) -> None:
        # FREEZE marks rows as visible to all transactions. Otherwise, the first reader of each page would do this and
        # cause writes.
        session.query("vacuum (freeze, analyze)")
        try:
            session.query(CHECKPOINT)
        except FailureError as error:
            if error.sqlstate != DENIED:
                raise

    def hint(self, session: Session, error: FailureError) -> str:
        if error.sqlstate != _NO_TABLE or not (schemas := [row[0] or "" for row in session.query(_SCHEMAS)]):
            return ""
        path = written("system.set", f"search_path={','.join([*schemas, 'public'])}")
        return (
            f"the tables are in {listed(schemas)}: write {schemas[0]}.TABLE, or set {path}; on an existing server, "
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
        """Raises InputError if the dump is from a newer major version. `given`: whether the server is an existing
        one."""
        if dump.major > major:
            other = f"add {written('system.set', 'bin=DIR')}"
            if given:
                dsn = written("system.dsn")
                other = f"connect to one with {dsn}, or remove {dsn} so that ironbench starts its own server"
            raise InputError(
                f"dump {dump.path}",
                f"was made by PostgreSQL {dump.version}, but the server is PostgreSQL {major}, which is older",
                f"use a server of version {dump.major} or later: {other}",
            )


def _left_out(
    dump: PgDump, there: Collection[str], makeable: Collection[str] | None = None, given: bool = False
) -> list[str]:
    """Returns the extensions of the dump that must be skipped. These extensions are not available, or the role may not
    create them. No data can depend on them.

    Raises InputError if another extension is not available, because any object in the dump may use it. The error is
    raised before anything is restored.
    """
    missing = [name for name in dump.extensions if name not in there]
    where = "" if given else f" with {written('system.set', 'bin=DIR')} (Debian: package postgresql-contrib)"
    if needed := [name for name in missing if name not in OBSERVING]:
        raise InputError(
            f"dump {dump.path}",
            f"requires the extension {', '.join(needed)}, which this PostgreSQL does not have",
            f"use a PostgreSQL with this extension{where}, or drop the extension before making the dump",
        )
    denied = [] if makeable is None else [name for name in dump.extensions if name not in makeable]
    return list(dict.fromkeys([*missing, *(name for name in denied if name in OBSERVING)]))


def _without(left_out: Sequence[str]) -> str:
    return f"without {', '.join(left_out)}, which only collects statistics" if left_out else ""
