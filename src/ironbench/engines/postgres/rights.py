"""What a role needs on a server that was running already, and whether it has it: asked before anything is started."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ironbench.engines.administration import CHECKPOINT, REPLICATION, SIZES, TABLES
from ironbench.errors import InputError
from ironbench.model.session import Session


@dataclass(frozen=True, slots=True)
class Right:
    """One right. Each has a row in docs/guide/your-own-server.md."""

    name: str
    cause: str
    """Why an option or workload is refused without it, said of the role."""
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
            "may not create tables",
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


def require(session: Session, wanted: Collection[tuple[str, str]]) -> None:
    """`wanted`: option or workload, and the name of the right that it needs. InputError: one of them is missing."""
    for subject, name in wanted:
        right = RIGHTS[name]
        held, role, schema = session.query(
            f"select {right.held}, quote_ident(current_user), quote_ident(coalesce(current_schema(), 'public'))"
        )[0]
        if held != "t":
            hint = right.grant.format(role=role, schema=schema) + (f" ({right.note})" if right.note else "")
            raise InputError(subject, f"role {role} of the server at --dsn {right.cause}", f"ask for: {hint}")
