"""The user's own rule: a query that must answer true after every trial."""

from __future__ import annotations

from ironbench import engines
from ironbench.errors import FailureError, shortened
from ironbench.model.own_data import OwnData
from ironbench.model.record import Check
from ironbench.model.session import Row, Session
from ironbench.workloads.base import checked

_FALSE = ("0", "f", "false")


def own_check(session: Session, data: OwnData | None) -> tuple[Check, ...]:
    """What the query answers; an error is an answer that is not true."""
    if data is None or not data.check:
        return ()
    try:
        rows = session.query(data.check)
    except FailureError as error:
        return (checked(_name(data), "true", f"error: {error.cause}"),)
    found, holds = _value(session, rows)
    return (checked(_name(data), "true", found, holds),)


def _name(data: OwnData) -> str:
    return f"check ({shortened(data.check)})"


def _value(session: Session, rows: list[Row]) -> tuple[str, bool]:
    """The answer in words, and whether it is true."""
    if len(rows) != 1 or len(rows[0]) != 1:
        return f"{len(rows)} rows of {len(rows[0]) if rows else 0} columns, and not one value", False
    value = rows[0][0]
    if value is None:
        return "null", False
    true = engines.get(session.engine).traits.dialect.true
    if value in true:
        return "true", True
    return ("false" if value in _FALSE else f"{shortened(value)!r}, which is neither true nor false"), False
