"""A server that was running already: what can be seen of it, and whether its role and its room suffice.

All of it is asked before anything starts, and nothing is configured.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from ironbench.engines.administration import CHECKPOINT, DATABASES, REPLICATION, SIZES, TABLES, Whereabouts
from ironbench.engines.given import taken
from ironbench.engines.postgres import dsn, installation, settings
from ironbench.engines.server_session import LocalServer
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
    """A running server is taken as it is: whatever would change it is refused."""
    return taken(system, dsn.parse, _way_to_vary(system.settings))


def _way_to_vary(given: Mapping[str, str]) -> str:
    """For a setting that a session may make: some are the server's alone, which a DSN cannot change."""
    if (name := next((name for name in given if name != "bin"), None)) is None:
        return ""
    meant = "" if "." in name else settings.meant(name, installation.find())
    to = written("system.dsn")
    return f"{meant} ".lstrip() + f"set it for sessions by {to} (…?options=-c%20NAME%3DVALUE), or "


def find(host: str, query: Query) -> LocalServer:
    """The server's place on this machine; an empty one when it runs elsewhere or in another container."""
    if not host.startswith("/") and host not in _HERE:
        return LocalServer()
    pid, started = query(_BACKEND)[0]
    if not _is_backend(int(pid or 0), float(started or 0)):
        return LocalServer()
    parent = processes.parent(int(pid or 0))
    return LocalServer(None if parent is None else processes.identify(parent), _directories(query))


def _is_backend(pid: int, started_unix_s: float) -> bool:
    """Whether that process id, here, is our backend: the server may count its processes in another namespace."""
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
    """Whether that is a server's."""
    return name in _PROGRAMS


def first_word(query: Query, sql: str) -> str:
    """What a query says; empty where the role may not ask."""
    try:
        rows = query(sql)
    except IronbenchError:
        return ""
    return (rows[0][0] or "") if rows else ""


@dataclass(frozen=True, slots=True)
class Right:
    """One right. Each has a row in docs/guide/your-own-server.md."""

    name: str
    cause: str
    """Why a table, option or workload is refused without it; `{schema}` and `{database}` are filled in."""
    held: str
    """SQL: true for a role that has it."""
    grant: str
    """SQL with which an administrator gives it; `{role}` and `{schema}` are filled in."""
    note: str = ""
    """What else to know of it."""


MONITOR = "monitor"
CONFIGURE = "configure"

_SUPERUSER = "(select rolsuper from pg_roles where rolname = current_user)"
RIGHTS = {
    right.name: right
    for right in (
        Right(
            TABLES,
            "may not create tables in schema {schema} of database {database}: it lacks CREATE",
            "coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)",
            "GRANT CREATE ON SCHEMA {schema} TO {role}",
        ),
        # Before version 15 there is no such role to be a member of, and only superusers may.
        Right(
            CHECKPOINT,
            "may not request checkpoints",
            f"coalesce((select pg_has_role(oid, 'usage') from pg_roles where rolname = 'pg_checkpoint'), {_SUPERUSER})",
            "GRANT pg_checkpoint TO {role}",
            "before PostgreSQL 15 only superusers may",
        ),
        Right(
            REPLICATION,
            "may not copy the server",
            "(select rolreplication or rolsuper from pg_roles where rolname = current_user)",
            "ALTER ROLE {role} REPLICATION",
            "pg_hba.conf needs a line for replication, too",
        ),
        Right(
            SIZES,
            "may not see how large all databases are",
            "pg_has_role('pg_read_all_stats', 'usage') "
            "or (select bool_and(has_database_privilege(oid, 'CONNECT')) from pg_database)",
            "GRANT pg_read_all_stats TO {role}",
        ),
        Right(
            DATABASES,
            "may not create databases, and trials start from a copy of your data: it lacks CREATEDB",
            "(select rolcreatedb or rolsuper from pg_roles where rolname = current_user)",
            "ALTER ROLE {role} CREATEDB",
        ),
        Right(
            MONITOR,
            "may not see the whole server",
            "pg_has_role('pg_monitor', 'usage')",
            "GRANT pg_monitor TO {role}",
        ),
        Right(
            CONFIGURE,
            "may not see the configure flags",
            "has_table_privilege('pg_config', 'SELECT') and has_function_privilege('pg_config()', 'EXECUTE')",
            "GRANT SELECT ON pg_config TO {role}; GRANT EXECUTE ON FUNCTION pg_config() TO {role}",
        ),
    )
}


def require_rights(session: Session, needs: Collection[tuple[str, str]]) -> None:
    """`needs`: what needs a right (a table, option or workload), and the right's name. InputError: one is missing."""
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
            raise InputError(subject, refusal, f"ask for: {hint}")


_OBSERVER = 1
_FREE = """
select current_setting('max_connections')::int
    - case when rolsuper then 0 else current_setting('superuser_reserved_connections')::int
        + coalesce(current_setting('reserved_connections', true), '0')::int end
    - (select count(*) from pg_stat_activity where usesysid is not null and datid is not null),
    current_setting('max_connections')
from pg_roles where rolname = current_user
"""
"""Every role sees that there is a session of another one, whose and where; what kind it is, only some (PostgreSQL 18
documentation, 27.2.3). The launcher of logical replication is in no database, nor are most WAL senders, which have
places of their own. What helps a session, such as a parallel worker, counts as one, too: `_connect` tries then."""
TOO_MANY = ("53300", "53400")
"""too_many_connections and configuration_limit_exceeded: what server and poolers answer when they are full."""


def require_room(session: PostgresSession, clients: int) -> None:
    """InputError when not all of `clients` could connect besides who is connected now."""
    if clients == 0:
        return
    free, most = (int(value or 0) for value in session.query(_FREE)[0])
    if clients + _OBSERVER <= free or _connect(session, clients + _OBSERVER):
        return
    raise InputError(
        written("load.clients", clients),
        f"the server at {written('system.dsn')} takes {counted(most, 'connection')} (max_connections), "
        f"of which {max(0, free)} are free",
        f"use at most {counted(max(1, free - _OBSERVER), 'client')}, raise max_connections, or connect through "
        "a pooler",
    )


def _connect(session: PostgresSession, connections: int) -> bool:
    """Tries it: the sum above is the server's, and a pooler before the server may well take more."""
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
"""Place of the parent in /proc/<pid>/stat (proc_pid_stat(5))."""
_ELSEWHERE = "its processes have other numbers there: it runs in a container"


def whereabouts(session: Session, machine: Tree) -> Whereabouts:
    """By the process of our own connection, whose parent is the server's first one."""
    pid = int(session.query(_OWN_BACKEND)[0][0] or 0)
    stat = machine.read(f"/proc/{pid}/stat") or ""
    if not is_program(stat.partition("(")[2].rpartition(")")[0]):
        return Whereabouts(unseen=_ELSEWHERE)
    first = int(stat.rpartition(")")[2].split()[_PARENT - 2])
    data = first_word(session.query, DATA) or _of_command(machine.read(f"/proc/{first}/cmdline") or "")
    if not data:
        return Whereabouts((first,))
    roles = {"data": data, "log": machine.resolved(f"{data}/pg_wal")}
    if temp := first_word(session.query, TEMP):
        roles["temp"] = temp
    return Whereabouts((first,), {role: machine.resolved(path) for role, path in roles.items()})


def _of_command(line: str) -> str:
    """The directory of a server's command line: any user may read that."""
    words = line.split("\0")
    for before, word in pairwise(words):
        if before == "-D":
            return word
    return next((word[2:] for word in words if word.startswith("-D") and len(word) > 2), "")
