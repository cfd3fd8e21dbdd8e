"""What the observers of PostgreSQL share: what this server has, and rows as JSON so that any version's columns do.

A view's columns change from version to version; `to_jsonb(row)` names what is there.

A backend publishes what it counted when a transaction ends, at most once a second, and only where something besides the
number of transactions is to be published, such as counts of a table: scripts that touch none publish nothing before
their backends end (PostgreSQL 18, pgstat_report_stat in src/backend/utils/activity/pgstat.c).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ironbench.errors import IronbenchError
from ironbench.model.observation import Observation
from ironbench.model.session import Session

LATE_S = 1.0
"""PGSTAT_MIN_INTERVAL."""


def as_published(observation: Observation, at_once: Collection[str] = ()) -> Observation:
    """Marks all that was observed as late but what is known `at_once`."""
    names = {*observation.metrics, *(series.name for series in observation.series)}
    return replace(observation, late=dict.fromkeys(names - {*at_once}, LATE_S))


def has_relation(session: Session, name: str) -> bool:
    """Whether this server has such a view or table and lets us read it."""
    return _is_true(session, f"select coalesce(has_table_privilege(to_regclass('{name}'), 'select'), false)")


def has_function(session: Session, signature: str) -> bool:
    """Whether this server has such a function and lets us call it."""
    return _is_true(
        session, f"select coalesce(has_function_privilege(to_regprocedure('{signature}')::oid, 'execute'), false)"
    )


def has_replicas(session: Session) -> bool:
    """Whether replicas of this server are connected and we may see how far they are."""
    seen = "pg_has_role('pg_read_all_stats', 'usage') and not pg_is_in_recovery()"
    return _is_true(session, f"select {seen} and exists (select from pg_stat_replication where replay_lsn is not null)")


def _is_true(session: Session, sql: str) -> bool:
    try:
        return session.query(sql) == [("t",)]
    except IronbenchError:
        return False
