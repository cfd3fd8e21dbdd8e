"""Common parts of the PostgreSQL observers: checks which views exist, and reads rows as JSON.

Columns of views change between versions; `to_jsonb(row)` includes the existing ones.

A backend reports its statistics at the end of a transaction, at most once a second, and only if there is more to report
than the number of transactions, such as counters of a table. Backends with scripts that access no table report only
when they exit (PostgreSQL 18, pgstat_report_stat in src/backend/utils/activity/pgstat.c).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ironbench.errors import IronbenchError
from ironbench.model.observation import Observation
from ironbench.model.session import Session

LATE_S = 1.0
"""Maximum delay of statistics in seconds: PGSTAT_MIN_INTERVAL."""


def as_published(observation: Observation, at_once: Collection[str] = ()) -> Observation:
    """Marks all metrics as delayed except those in `at_once`."""
    names = {*observation.metrics, *(series.name for series in observation.series)}
    return replace(observation, late=dict.fromkeys(names - {*at_once}, LATE_S))


def has_relation(session: Session, name: str) -> bool:
    """Returns whether a view or table exists and the role may read it."""
    return _is_true(session, f"select coalesce(has_table_privilege(to_regclass('{name}'), 'select'), false)")


def has_function(session: Session, signature: str) -> bool:
    """Returns whether a function exists and the role may call it."""
    return _is_true(
        session, f"select coalesce(has_function_privilege(to_regprocedure('{signature}')::oid, 'execute'), false)"
    )


def has_replicas(session: Session) -> bool:
    """Returns whether replicas are connected and the role can see their progress."""
    seen = "pg_has_role('pg_read_all_stats', 'usage') and not pg_is_in_recovery()"
    return _is_true(session, f"select {seen} and exists (select from pg_stat_replication where replay_lsn is not null)")


def _is_true(session: Session, sql: str) -> bool:
    try:
        return session.query(sql) == [("t",)]
    except IronbenchError:
        return False
