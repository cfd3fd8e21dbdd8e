"""Checks of an existing server. The checks find the server's processes and directories, and examine the role's
privileges and the free connections. The checks run before any trial starts, and change no settings."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from ironbench.engines.administration import CHECKPOINT, DATABASES, REPLICATION, SIZES, TABLES, ServerLocation
from ironbench.engines.existing_server import validated_existing
from ironbench.engines.postgres import dsn, installation, settings
from ironbench.engines.server_session import LocalServer, free_connections
from ironbench.errors import InputError, IronbenchError, written
from ironbench.host import processes
from ironbench.host.tree import Tree
from ironbench.model.secrets import Secrets
from ironbench.model.session import Row, Session
from ironbench.model.system import System
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench.engines.postgres.session import PostgresSession


Query = Callable[[str], list[Row]]

_HERE = ("localhost", "127.0.0.1", "::1")
_PROGRAMS = ("postgres", "postmaster")
_CLOCKS_APART_S = 3.0

_BACKEND = """
    SELECT pid, extract(epoch FROM backend_start) FROM pg_stat_activity WHERE pid = pg_backend_pid()
"""
DATA = "SELECT setting FROM pg_settings WHERE name = 'data_directory'"
TEMP = """
    SELECT pg_tablespace_location(t.oid)
      FROM pg_tablespace t
     WHERE spcname = split_part(current_setting('temp_tablespaces'), ',', 1)
"""


def validated(system: System) -> tuple[System, Secrets]:
    """Validates a system with an existing server. Raises InputError for options that would change the server."""
    return validated_existing(system, dsn.parse, _way_to_vary(system.settings))


def _way_to_vary(given: Mapping[str, str]) -> str:
    """Returns a hint that a setting may be set for sessions with the DSN. Some settings can only be set for the whole
    server, so the hint may not work."""
    if (name := next((name for name in given if name != "bin"), None)) is None:
        return ""
    meant = "" if "." in name else settings.similar_setting_hint(name, installation.find())
    to = written("system.dsn")
    return f"{meant} ".lstrip() + f"set it for sessions with {to} (…?options=-c%20NAME%3DVALUE), or "


def find(host: str, query: Query) -> LocalServer:
    """Locates the server on this machine. Returns an empty result if the server runs elsewhere or in another
    container."""
    if not host.startswith("/") and host not in _HERE:
        return LocalServer()
    pid, started = query(_BACKEND)[0]
    if not _is_backend(int(pid or 0), float(started or 0)):
        return LocalServer()
    parent = processes.parent(int(pid or 0))
    return LocalServer(None if parent is None else processes.identify(parent), _directories(query))


def _is_backend(pid: int, started_unix_s: float) -> bool:
    """Returns whether the process with this id on this machine is the backend of this session. If the server runs in a
    container, the id may belong to another process."""
    born = processes.started_unix_s(pid)
    return born is not None and abs(born - started_unix_s) < _CLOCKS_APART_S and is_program(processes.command(pid))


def _directories(query: Query) -> dict[str, str]:
    data = first_word(query, DATA)
    if not data or not Path(data).is_dir():
        return {}
    roles = {"data": data, "log": os.path.realpath(Path(data, "pg_wal"))}
    temp = first_word(query, TEMP)
    if temp and Path(temp).is_dir():
        roles["temp"] = temp
    return roles


def is_program(name: str) -> bool:
    """Returns whether `name` is a program of the server."""
    return name in _PROGRAMS


def first_word(query: Query, sql: str) -> str:
    """Returns the first value of a query's result. Returns "" if the role may not run the query."""
    try:
        rows = query(sql)
    except IronbenchError:
        return ""
    return (rows[0][0] or "") if rows else ""


@dataclass(frozen=True, slots=True)
class Privilege:
    """A privilege that a role may need. docs/start/your-own-server.md lists all of them."""

    name: str
    cause: str
    """Why a table, option or workload is refused if the role lacks the privilege. Placeholders: `{schema}`,
    `{database}`."""
    held: str
    """SQL expression that is true if the current role has the privilege."""
    grant: str
    """SQL with which an administrator grants the privilege. Placeholders: `{role}`, `{schema}`."""
    note: str = ""
    """Further information for the user."""


MONITOR = "monitor"
CONFIGURE = "configure"

_SUPERUSER = "(select rolsuper from pg_roles where rolname = current_user)"
RIGHTS = {
    right.name: right
    for right in (
        Privilege(
            TABLES,
            "lacks CREATE on schema {schema} of database {database}",
            "coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)",
            "GRANT CREATE ON SCHEMA {schema} TO {role}",
        ),
        # Before version 15, the role pg_checkpoint does not exist, and only superusers may request checkpoints.
        Privilege(
            CHECKPOINT,
            "lacks the privilege to request checkpoints",
            f"coalesce((select pg_has_role(oid, 'usage') from pg_roles where rolname = 'pg_checkpoint'), {_SUPERUSER})",
            "GRANT pg_checkpoint TO {role}",
            "before PostgreSQL 15, only superusers can request checkpoints",
        ),
        Privilege(
            REPLICATION,
            "lacks REPLICATION, which a base backup requires",
            "(select rolreplication or rolsuper from pg_roles where rolname = current_user)",
            "ALTER ROLE {role} REPLICATION",
            "and add a line for replication to pg_hba.conf",
        ),
        Privilege(
            SIZES,
            "lacks the privilege to read the sizes of all databases",
            "pg_has_role('pg_read_all_stats', 'usage') "
            "or (select bool_and(has_database_privilege(oid, 'CONNECT')) from pg_database)",
            "GRANT pg_read_all_stats TO {role}",
        ),
        Privilege(
            DATABASES,
            "lacks CREATEDB, which is required because trials run on copies of your data",
            "(select rolcreatedb or rolsuper from pg_roles where rolname = current_user)",
            "ALTER ROLE {role} CREATEDB",
        ),
        Privilege(
            MONITOR,
            "lacks the privileges of pg_monitor",
            "pg_has_role('pg_monitor', 'usage')",
            "GRANT pg_monitor TO {role}",
        ),
        Privilege(
            CONFIGURE,
            "lacks the privilege to read pg_config",
            "has_table_privilege('pg_config', 'SELECT') and has_function_privilege('pg_config()', 'EXECUTE')",
            "GRANT SELECT ON pg_config TO {role}; GRANT EXECUTE ON FUNCTION pg_config() TO {role}",
        ),
    )
}


def require_rights(session: Session, needs: Collection[tuple[str, str]]) -> None:
    """Raises InputError if the role lacks a required privilege. `needs`: pairs of a table, option or workload, and the
    privilege that it needs."""
    for subject, name in needs:
        right = RIGHTS[name]
        held, role, schema, database = session.query(
            f"select {right.held}, quote_ident(current_user), quote_ident(coalesce(current_schema(), 'public')), "
            "quote_ident(current_database())"
        )[0]
        if held != "t":
            cause = right.cause.format(schema=schema, database=database)
            hint = right.grant.format(role=role, schema=schema) + (f" ({right.note})" if right.note else "")
            refusal = f"role {role} of the server at {written('system.dsn')} {cause}"
            raise InputError(subject, refusal, f"have an administrator run: {hint}")


_OBSERVER = 1
_FREE = """
select current_setting('max_connections')::int
    - case when rolsuper then 0 else current_setting('superuser_reserved_connections')::int
        + coalesce(current_setting('reserved_connections', true), '0')::int end
    - (select count(*) from pg_stat_activity where usesysid is not null and datid is not null)
from pg_roles where rolname = current_user
"""
"""Query for the number of free connections.

Every role can see the role and database of other sessions, but not always their type (PostgreSQL 18 documentation,
27.2.3). Sessions without a database do not count, because the launcher of logical replication and most WAL senders use
other connection slots. Auxiliary backends, such as parallel workers, are counted although they use other slots too. If
the result is too low, `_connect` tests the real number.
"""
TOO_MANY = ("53300", "53400")
"""SQLSTATEs too_many_connections and configuration_limit_exceeded. A server or a pooler without free connections raises
these errors."""


def require_room(session: PostgresSession, clients: int) -> None:
    """Raises InputError if the server has not enough free connections for `clients`."""
    if clients == 0:
        return
    needed = clients + _OBSERVER
    free = free_connections(lambda: int(session.query(_FREE)[0][0] or 0), needed)
    if needed <= free or _connect(session, needed):
        return
    most = int(session.query("select current_setting('max_connections')")[0][0] or 0)
    raise InputError(
        written("load.clients", clients),
        f"the server at {written('system.dsn')} accepts {counted(most, 'connection')} (max_connections), "
        f"of which {max(0, free)} are free",
        f"use at most {counted(max(1, free - _OBSERVER), 'client')}, raise max_connections, or connect through "
        "a pooler",
    )


def _connect(session: PostgresSession, connections: int) -> bool:
    """Tests whether this many connections are possible. This may be the case even if `_FREE` returns fewer, because
    `_FREE` applies to the server, and a pooler may accept more connections than the server."""
    with contextlib.ExitStack() as held:
        for _ in range(connections):
            try:
                held.callback(session.connect().close)
            except IronbenchError as error:
                if error.sqlstate in TOO_MANY:
                    return False
                raise
    return True


_OWN_BACKEND = "select pg_backend_pid()"
_PARENT = 3
"""Index of the parent process in /proc/<pid>/stat (proc_pid_stat(5))."""
_ELSEWHERE = "the server runs in a container, where its process IDs are different"


def locate(session: Session, machine: Tree) -> ServerLocation:
    """Locates the server on `machine`. The parent of this connection's backend is the postmaster."""
    pid = int(session.query(_OWN_BACKEND)[0][0] or 0)
    stat = machine.read(f"/proc/{pid}/stat") or ""
    if not is_program(stat.partition("(")[2].rpartition(")")[0]):
        return ServerLocation(unseen=_ELSEWHERE)
    first = int(stat.rpartition(")")[2].split()[_PARENT - 2])
    data = first_word(session.query, DATA) or _of_command(machine.read(f"/proc/{first}/cmdline") or "")
    if not data:
        return ServerLocation((first,))
    roles = {"data": data, "log": machine.resolved(f"{data}/pg_wal")}
    if temp := first_word(session.query, TEMP):
        roles["temp"] = temp
    return ServerLocation((first,), {role: machine.resolved(path) for role, path in roles.items()})


def _of_command(line: str) -> str:
    """Returns the data directory in the command line of a server. Every user can read command lines."""
    words = line.split("\0")
    for before, word in pairwise(words):
        if before == "-D":
            return word
    return next((word[2:] for word in words if word.startswith("-D") and len(word) > 2), "")
