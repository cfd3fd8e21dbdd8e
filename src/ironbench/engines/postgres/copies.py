"""Databases that ironbench creates on an existing PostgreSQL server. The names identify the databases as ironbench's
(`engines.own_databases`)."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

from ironbench.engines.administration import MARK
from ironbench.engines.data_import import Copy, DatabaseCopies
from ironbench.engines.own_databases import is_ours, new_name
from ironbench.engines.postgres import dsn
from ironbench.engines.postgres.session import PostgresSession
from ironbench.errors import FailureError, InputError, IronbenchError, written
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session
from ironbench.model.system import System
from ironbench.units import stored
from ironbench.words import listed

SMALL_BYTES = 64 << 20
"""Maximum size of a template for which the copy strategy WAL_LOG is faster. FILE_COPY needs two checkpoints (PostgreSQL
18, CREATE DATABASE)."""
KEEPER = "ironbench keeper"
"""application_name of a connection that marks a running ironbench process. The process keeps this connection open as
long as it may create and drop databases."""
IN_USE, MISSING, DENIED, DUPLICATE = "55006", "3D000", "42501", "42P04"
"""SQLSTATEs of errors that are handled here."""
_LISTED = """
    select datname, coalesce(shobj_description(oid, 'pg_database'), ''), pg_database_size(oid)
      from pg_database
     where datname ~ '^ironbench_[0-9a-f]{10}_[0-9a-f]{8}$' and pg_has_role(datdba, 'usage')
     order by datname
"""
_END = """
    select pg_terminate_backend(pid)
      from pg_stat_activity a join pg_roles r on r.oid = a.usesysid
     where a.datname = '{name}' and pid <> pg_backend_pid() and pg_has_role(r.oid, 'usage')
       and (not r.rolsuper or current_setting('is_superuser') = 'on')
"""
"""SQL that terminates the sessions that the role may terminate.

DROP DATABASE WITH (FORCE) is not used. While an autovacuum worker is in the database, PostgreSQL 15 allows it only to
superusers. Plain DROP DATABASE ends such workers itself, and waits up to 5 s for them (CountOtherDBBackends in
src/backend/storage/ipc/procarray.c).
"""
_DROPS = 3
"""Number of attempts to drop a database. An attempt fails if another autovacuum worker starts in the database."""
_SETTINGS = """
    select split_part(one, '=', 1), substr(one, strpos(one, '=') + 1)
      from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase, unnest(s.setconfig) one
     where s.setrole in (0, (select oid from pg_roles where rolname = current_user)) and
"""
"""Query for the settings of a database, and for the settings that the current role has in this database. The latter
take precedence."""
_FIXED = ("55P02", "42704", "22023")
"""SQLSTATEs of errors for settings that a session cannot change. The setting is fixed when a session starts, its
library is not loaded, or the server refuses its value."""
_STATE = """
    select md5(coalesce(string_agg(
               concat_ws(' ', c.oid, c.relfilenode, c.relname, s.n_tup_ins, s.n_tup_upd, s.n_tup_del),
               ',' order by c.oid), ''))
      from pg_class c left join pg_stat_user_tables s on s.relid = c.oid
     where c.oid >= 16384 and c.relkind in ('r', 'm', 'S', 'i', 'p', 'I', 'v')
"""


def made(session: Session) -> dict[str, tuple[int, str]]:
    """Returns the databases of ironbench on this server that the role may drop. For each name, the result contains the
    size in bytes and the content key. The key is "" if the database is incomplete."""
    return {
        name: (int(size or 0), _noted(comment or "").get("key", ""))
        for name, comment, size in session.query(_LISTED)
        if name and is_ours(name)
    }


def _noted(comment: str) -> dict[str, str]:
    try:
        note = json.loads(comment.partition(": ")[2])
    except ValueError:
        return {}
    return note if isinstance(note, dict) else {}


class PostgresCopies(DatabaseCopies):
    def __init__(self, system: System, secrets: Secrets) -> None:
        self._address, _ = dsn.parse(system.dsn or "", {})
        self._secrets = secrets
        # While this session is open, the `cleanup` of another user drops no databases, not even between two trials.
        self._session = PostgresSession(self._address_as(KEEPER), secrets)
        self._version = int(self._session.query("show server_version_num")[0][0] or 0)

    def kept(self, key: str) -> Copy | None:
        copies = [Copy(name, size, "kept") for name, (size, known) in made(self._session).items() if known == key]
        return copies[0] if copies else None

    def abandoned(self) -> dict[str, int]:
        others = f"select from pg_stat_activity where application_name = '{KEEPER}' and pid <> pg_backend_pid()"
        if self._session.query(others):
            return {}  # another running ironbench may need the databases
        return {name: size for name, (size, key) in made(self._session).items() if not key}

    def new(self, key: str, template: str = "") -> Copy:
        name = new_name()
        try:
            if not template:
                self._create(f"create database {name} template template0")
                how = "empty"
            else:
                how = self._copied(template, name) + self._with_settings(template, name)
            size = int(self._session.query(f"select pg_database_size('{name}')")[0][0] or 0)
            self._note(name, {"of": key})
        except BaseException:
            with suppress(IronbenchError):
                self.drop(name)
            raise
        return Copy(name, size, f"{how}, {stored(size)}")

    def complete(self, copy: Copy, key: str) -> Copy:
        self._note(copy.name, {"key": key})
        return replace(copy, bytes=int(self._session.query(f"select pg_database_size('{copy.name}')")[0][0] or 0))

    def drop(self, name: str) -> None:
        if not is_ours(name):
            return
        for left in reversed(range(_DROPS)):
            # Programs that ironbench started, such as a restore that was cancelled, may still be connected.
            self._session.query(_END.format(name=name))
            try:
                self._session.query(f"drop database if exists {name}")
                return
            except FailureError as error:
                if error.sqlstate != IN_USE or not left:
                    raise

    def with_database(self, system: System, name: str) -> System:
        address, _ = dsn.parse(system.dsn or "", {})
        return replace(system, dsn=replace(address, database=name).text())

    def size(self, template: str) -> int:
        rows = self._session.query("select pg_database_size(oid) from pg_database where datname = " + _text(template))
        return int(rows[0][0] or 0) if rows else 0

    def state(self, template: str) -> str:
        if template == self._address.database:
            raise InputError(
                written("data.template", template),
                f"is the database of {written('system.dsn')}, so it is in use and cannot be copied",
                f"connect {written('system.dsn')} to another database, e.g. postgres",
            )
        try:
            session = PostgresSession(replace(self._address_as("ironbench look"), database=template), self._secrets)
        except IronbenchError as error:
            raise self._refusal(template, error) from None
        try:
            return str(session.query(_STATE)[0][0])
        finally:
            session.stop()

    def _copied(self, template: str, name: str) -> str:
        quoted = '"' + template.replace('"', '""') + '"'
        begin = f"create database {name} template {quoted}"
        if self._version < 150000:
            self._create(begin, template)
            return "CREATE DATABASE TEMPLATE"
        strategy = "WAL_LOG" if self.size(template) <= SMALL_BYTES else "FILE_COPY"
        if strategy == "FILE_COPY" and self._version >= 180000:
            self._session.query("set file_copy_method = clone")
            try:
                self._create(f"{begin} strategy {strategy}", template)
            except FailureError as error:
                if error.sqlstate in (IN_USE, DENIED, DUPLICATE):
                    raise
                self._session.query("set file_copy_method = copy")
            else:
                return "CREATE DATABASE TEMPLATE by FILE_COPY, cloned"
        self._create(f"{begin} strategy {strategy}", template)
        return f"CREATE DATABASE TEMPLATE by {strategy}"

    def _with_settings(self, template: str, name: str) -> str:
        """Copies the template's settings (`ALTER DATABASE … SET`), because CREATE DATABASE does not copy them. The role
        may not be allowed to set some of them. Returns a phrase that names these settings."""
        lacking = []
        for setting, value in self._session.query(f"{_SETTINGS} d.datname = {_text(template)} order by s.setrole"):
            try:
                self._session.query(_altered(name, setting or "", value or ""))
            except FailureError as error:
                if error.sqlstate not in (DENIED, *_FIXED):
                    raise
                lacking.append(setting or "")
        return f", without its setting of {listed(lacking)} (no privilege)" if lacking else ""

    def _create(self, sql: str, template: str = "") -> None:
        try:
            self._session.query(sql)
        except FailureError as error:
            raise (self._refusal(template, error) if template else error) from None

    def _refusal(self, template: str, error: IronbenchError) -> IronbenchError:
        subject = written("data.template", template)
        if error.sqlstate == IN_USE:
            hint = "close the connections to this database, or use a database without connections"
            return InputError(subject, f"cannot be copied while in use: {error.cause}", hint)
        if error.sqlstate == MISSING:
            return InputError(subject, "no such database on this server", "use a database that `psql -l` lists")
        if error.sqlstate == DENIED:
            hint = (
                f"ask the owner of the database to run `ALTER DATABASE {template} IS_TEMPLATE true`, and check that "
                "the role has the attribute `CREATEDB`. Tables in a copy keep their owner and privileges: grant the "
                f"role access to them in {template}, or connect as the owner in {written('system.dsn')}"
            )
            return InputError(subject, f"no privilege to copy the database: {error.cause}", hint)
        return error

    def _address_as(self, application: str) -> dsn.PostgresAddress:
        return replace(self._address, options=self._address.options | {"application_name": application})

    def _note(self, name: str, note: dict[str, str]) -> None:
        self._session.query(f"comment on database {name} is {_text(f'{MARK}: {json.dumps(note)}')}")


def _altered(name: str, setting: str, value: str) -> str:
    """Returns SQL that gives a setting of a database a value.

    The SQL first sets the value in the session and then copies it to the database, because the session parses lists in
    the stored format (`search_path`). Statements that are sent together form one transaction, and the session has its
    own value again afterwards. Otherwise, a value such as that of `default_transaction_read_only` would prevent all
    later changes. `role` is set directly, because a session that changes its role may no longer be the owner of the
    database.
    """
    if setting == "role":
        return f"alter database {name} set role to {_text(value)}"
    held = f"select set_config({_text(setting)}, {_text(value)}, true)"
    return f'{held}; alter database {name} set "{setting}" from current'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
