"""Finds problems in a MariaDB or MySQL database. Every module in this package registers its checks with `EXAMINATION`.

The checks read variables, status and information_schema. Each check is a single `select` or `show`, with the timeout
`examination.TIMEOUT_S`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress

from ironbench.engines import examination
from ironbench.engines.examination import Examination, ExaminedServer, NeededPrivilege
from ironbench.errors import IronbenchError
from ironbench.model.session import Session

AREAS = ("durability", "memory", "writing", "tables", "indexes", "sessions", "observation")
PROCESS = NeededPrivilege("PROCESS", "GRANT PROCESS ON *.* TO {role}")
"""Without this privilege, a user sees only the user's own sessions and transactions."""
MARIADB = "MariaDB"

_ROLE = "concat(quote(substring_index(current_user(), '@', 1)), '@', quote(substring_index(current_user(), '@', -1)))"


def _server(session: Session) -> ExaminedServer:
    version, database, role = session.query(f"select version(), database(), {_ROLE}")[0]
    maria = MARIADB in (version or "")
    limit = f"max_statement_time = {examination.TIMEOUT_S}"
    if not maria:
        limit = f"max_execution_time = {examination.TIMEOUT_S * 1000}"
    with suppress(IronbenchError):  # older servers have no such setting
        session.query(f"set session {limit}")
    numbers = re.findall(r"\d+", version or "")[:3]
    grants = " ".join(row[0] or "" for row in session.query("show grants"))
    everything = re.search(r"GRANT (ALL PRIVILEGES|[^;]*\bPROCESS\b)[^;]* ON \*\.\*", grants, re.IGNORECASE)
    number = sum(int(part) * factor for part, factor in zip(numbers, (10000, 100, 1), strict=False))
    return ExaminedServer(
        MARIADB if maria else "MySQL",
        version or "",
        number,
        database or "",
        role or "",
        frozenset({PROCESS.name}) if everything else frozenset(),
        {},
        examination.memory_bytes(session),
    )


EXAMINATION = Examination(__name__, AREAS, _server)
probe = EXAMINATION.probe


def of_status(statement: str) -> Callable[[ExaminedServer], str]:
    """Returns a function that inserts the names of the server's status and variables tables into `statement`, in place
    of `{status}` and `{variables}`. MySQL has these tables in a different schema than MariaDB."""

    def of(server: ExaminedServer) -> str:
        schema = f"{'information' if server.title == MARIADB else 'performance'}_schema"
        return statement.format(status=f"{schema}.global_status", variables=f"{schema}.global_variables")

    return of


def changed(name: str, value: str) -> str:
    return f"SET GLOBAL {name} = {value}, and {name} = {value} in the server's configuration"
