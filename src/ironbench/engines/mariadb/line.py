"""A connection of its own to MariaDB, for statements that are timed one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ironbench.errors import FailureError
from ironbench.model.session import Row
from ironbench.process.line import CANCELLED

if TYPE_CHECKING:
    from ironbench._core import MysqlConnection

_T = TypeVar("_T")
_INTERRUPTED = (1317, 1969)
"""ER_QUERY_INTERRUPTED, ER_STATEMENT_TIMEOUT; their SQLSTATE is not the standard's for a cancelled statement."""


class MariadbLine:
    """See `model.session.Line`."""

    def __init__(self, connection: MysqlConnection) -> None:
        self._connection = connection

    def measure(self, sql: str) -> tuple[int, float, float]:
        return _told(lambda: self._connection.measure(sql))

    def query(self, sql: str) -> list[Row]:
        return _told(lambda: self._connection.query(sql))

    def columns(self) -> list[str]:
        return self._connection.columns()

    def copy_in(self, sql: str, data: bytes) -> int:
        return _told(lambda: self._connection.copy_in(sql, data))

    def cancel(self) -> None:
        self._connection.cancel()

    def close(self) -> None:
        self._connection.close()


def _told(what: Callable[[], _T]) -> _T:
    try:
        return what()
    except FailureError as error:
        if getattr(error, "number", 0) in _INTERRUPTED:
            error.sqlstate = CANCELLED
        raise
