"""Common parts of the PostgreSQL observers. This module checks which views exist, and reads rows as JSON.

The columns of views differ between versions. `to_jsonb(row)` returns those that exist.

A backend reports its statistics at the end of a transaction, but at most once a second. The backend does not report if
only its number of transactions has changed. If the scripts of a backend access no table, it therefore reports only when
it exits (PostgreSQL 18, pgstat_report_stat in src/backend/utils/activity/pgstat.c).
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
    """Returns the observation with a delay of `LATE_S` for all metrics and series except those in `at_once`."""
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
