"""What the observers of PostgreSQL share: what this server has, and rows as JSON so that any version's columns do.

A view's columns change from version to version; `to_jsonb(row)` names what is there. The statistics that backends keep
reach these views at most once a second, and when a backend goes idle (PostgreSQL: monitoring-stats), so that figures
of a short window lag a little at both ends.
"""

from __future__ import annotations

from ironbench.errors import IronbenchError
from ironbench.model.session import Session


def has_relation(session: Session, name: str) -> bool:
    """Whether this server has such a view or table and lets us read it."""
    return _is_true(session, f"select coalesce(has_table_privilege(to_regclass('{name}'), 'select'), false)")


def has_function(session: Session, signature: str) -> bool:
    """Whether this server has such a function and lets us call it."""
    return _is_true(
        session, f"select coalesce(has_function_privilege(to_regprocedure('{signature}')::oid, 'execute'), false)"
    )


def _is_true(session: Session, sql: str) -> bool:
    try:
        return session.query(sql) == [("t",)]
    except IronbenchError:
        return False
