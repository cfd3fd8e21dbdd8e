"""Whether a server that was running already takes as many clients as a plan will connect."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ironbench.errors import InputError, IronbenchError
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench.engines.postgres.session import PostgresSession

_OBSERVER = 1
_FREE = """
select current_setting('max_connections')::int
    - case when rolsuper then 0 else current_setting('superuser_reserved_connections')::int
        + coalesce(current_setting('reserved_connections', true), '0')::int end
    - (select count(*) from pg_stat_activity where backend_type in ('client backend', 'walsender')),
    current_setting('max_connections')
from pg_roles where rolname = current_user
"""
TOO_MANY = ("53300", "53400")
"""too_many_connections and configuration_limit_exceeded: what server and poolers answer when they are full."""


def require(session: PostgresSession, clients: int) -> None:
    """InputError when not all of `clients` could connect besides who is connected now."""
    free, most = (int(value or 0) for value in session.query(_FREE)[0])
    if clients + _OBSERVER <= free or _connect(session, clients + _OBSERVER):
        return
    raise InputError(
        f"--clients {clients}",
        f"the server at --dsn takes {counted(most, 'connection')} (max_connections), of which {max(0, free)} are free",
        f"use at most {counted(max(1, free - _OBSERVER), 'client')}, raise max_connections, or connect through "
        "a pooler",
    )


def _connect(session: PostgresSession, wanted: int) -> bool:
    """Tries it: the sum above is the server's, and a pooler before the server may well take more."""
    with contextlib.ExitStack() as held:
        for _ in range(wanted):
            try:
                held.callback(session.connect().close)
            except IronbenchError as error:
                if error.sqlstate in TOO_MANY:
                    return False
                raise
    return True
