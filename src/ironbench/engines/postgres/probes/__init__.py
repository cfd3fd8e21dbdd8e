"""Finds problems in a PostgreSQL database. Every module in this package registers its checks with `EXAMINATION`.

The checks only read catalogs and statistics views, which takes milliseconds for any amount of data.
"""

from __future__ import annotations

from ironbench.engines import examination
from ironbench.engines.examination import Examination, ExaminedServer, NeededPrivilege
from ironbench.engines.postgres.existing_server import MONITOR, RIGHTS
from ironbench.engines.postgres.resources import rotates
from ironbench.model.session import Session

AREAS = (
    "durability",
    "memory",
    "checkpoints",
    "planner",
    "tables",
    "indexes",
    "sessions",
    "replication",
    "observation",
)
MONITORING = NeededPrivilege("pg_monitor", RIGHTS[MONITOR].grant)
"""Without this privilege, a role sees only its own sessions, and no directories."""

_SERVER = f"""
    select current_setting('server_version'), current_setting('server_version_num'), quote_ident(current_database()),
           quote_ident(current_user), {RIGHTS[MONITOR].held}
"""
_EXTENSIONS = """
    select e.extname, quote_ident(n.nspname)
      from pg_extension e join pg_namespace n on n.oid = e.extnamespace
     where has_schema_privilege(n.oid, 'usage')
"""
STATEMENTS = "pg_stat_statements"
LOADED = f"exists (select from pg_settings where name = '{STATEMENTS}.max')"
"""SQL expression that is true if the server has loaded pg_stat_statements. Otherwise, pg_settings shows no settings of
this library."""


def _server(session: Session) -> ExaminedServer:
    version, number, database, role, monitors = session.query(_SERVER)[0]
    extensions = {str(name): str(schema) for name, schema in session.query(_EXTENSIONS)}
    if session.query(f"select {LOADED}") != [("t",)]:
        extensions.pop(STATEMENTS, None)
    return ExaminedServer(
        title="PostgreSQL",
        version=str(version),
        number=int(number or 0),
        database=str(database),
        role=str(role),
        rights=frozenset({MONITORING.name}) if monitors == "t" else frozenset(),
        extensions=extensions,
        memory_bytes=examination.memory_bytes(session),
        rotates=rotates(data) if (data := session.directories().get("data")) else None,
    )


# Statements that are sent together form one transaction, and these settings apply only to it. If a pooler passes the
# connection on to another client, the settings are gone (PostgreSQL 18 documentation, 54.2.2.1).
_WRAPPED = (
    f"set transaction read only; set local statement_timeout = '{examination.TIMEOUT_S}s'; "
    "set local lock_timeout = '1s'; {}"
)
EXAMINATION = Examination(__name__, AREAS, _server, _WRAPPED)
probe = EXAMINATION.probe


def changed(name: str, value: str, *, restart: bool = False) -> str:
    """Returns SQL that changes a setting for the whole server."""
    command = f"ALTER SYSTEM SET {name} = '{value}'"
    return f"{command}; and restart the server" if restart else f"{command}; SELECT pg_reload_conf()"


def since(column: str = "stats_reset") -> str:
    """Returns an SQL expression for the number of seconds since the statistics were reset. The value is null if they
    were never reset."""
    return f"extract(epoch from now() - {column})"
