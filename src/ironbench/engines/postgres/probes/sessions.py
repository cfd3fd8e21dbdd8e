"""Probes of sessions: number of connections, and sessions that block others."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.engines.examination import ExaminedServer, Readings, connections_reading
from ironbench.engines.postgres.probes import MONITORING, changed, probe
from ironbench.model.diagnosis import ok, severe, warning
from ironbench.model.session import Row
from ironbench.units import span
from ironbench.words import counted

_HOUR_S = 3600.0

_CONNECTIONS = """
    select sum(numbackends),
           current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
      from pg_stat_database
"""


@probe("sessions", "connections", _CONNECTIONS)
def connections(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Number of connections, compared with the maximum."""
    used, most = (int(value or 0) for value in rows[0])
    remedy = "use a connection pooler, or raise max_connections and restart the server"
    return connections_reading(used, most, remedy)


_IDLE = """
    select pid, usename, extract(epoch from now() - state_change)
      from pg_stat_activity
     where state like 'idle in transaction%' and state_change < now() - interval '1 minute'
     order by state_change
"""


@probe("sessions", "idle in a transaction", _IDLE, MONITORING)
def idle(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Sessions that are idle in an open transaction."""
    if not rows:
        return ok("none longer than a minute")
    pid, who, age = rows[0]
    seen = f"{counted(len(rows), 'session')}, the oldest for {span(float(age or 0))} (process {pid}, role {who})"
    reading = severe if float(age or 0) >= _HOUR_S else warning
    return reading(
        seen,
        "Idle transactions hold their locks and prevent vacuum from removing dead tuples: tables grow during trials.",
        f"SELECT pg_terminate_backend({pid}); for good: {changed('idle_in_transaction_session_timeout', '5min')}",
    )


_LONG = """
    select pid, usename, extract(epoch from now() - xact_start)
      from pg_stat_activity
     where backend_type = 'client backend' and state = 'active' and xact_start < now() - interval '1 hour'
     order by xact_start
"""


@probe("sessions", "long transactions", _LONG, MONITORING)
def long(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Transactions that have been active for an hour or longer."""
    if not rows:
        return ok("none longer than an hour")
    pid, who, age = rows[0]
    return warning(
        f"{counted(len(rows), 'transaction')}, the oldest for {span(float(age or 0))} (process {pid}, role {who})",
        "Long transactions prevent vacuum from removing dead tuples, and add load to every trial.",
        f"wait until the transaction ends, or SELECT pg_cancel_backend({pid})",
    )


_PREPARED = """
    select gid, owner, extract(epoch from now() - prepared)
      from pg_prepared_xacts where prepared < now() - interval '10 minutes' order by prepared
"""


@probe("sessions", "prepared transactions", _PREPARED)
def prepared(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Transactions that were prepared for two-phase commit and never finished."""
    if not rows:
        return ok("none older than ten minutes")
    name, who, age = rows[0]
    reading = severe if float(age or 0) >= _HOUR_S else warning
    return reading(
        f"{counted(len(rows), 'transaction')}, the oldest for {span(float(age or 0))} (role {who})",
        "Prepared transactions hold their locks, even across restarts, and prevent vacuum from removing dead tuples.",
        f"ROLLBACK PREPARED '{str(name).replace(chr(39), chr(39) * 2)}', or commit it",
    )


def _waiting(server: ExaminedServer) -> str:
    if server.number < 140000:
        return ""
    return """
        select count(*), extract(epoch from now() - min(waitstart)) from pg_locks
         where not granted and waitstart < now() - interval '10 seconds'
    """


@probe("sessions", "lock waits", _waiting)
def waits(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Sessions that have waited for a lock for ten seconds or longer."""
    waiting, longest_s = int(rows[0][0] or 0), float(rows[0][1] or 0)
    if not waiting:
        return ok("none longer than ten seconds")
    return warning(
        f"{counted(waiting, 'session')}, the longest for {span(longest_s)}",
        "A session holds a lock for a long time, and the sessions that wait for it do no work.",
        "SELECT pid, pg_blocking_pids(pid), query FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
    )
