"""An ODBC connection in a child process, and the parent's access to it. The child opens the connection, identifies the
database, and answers requests until the parent closes the channel."""

from __future__ import annotations

import os
import re
import select
import threading
import time
from collections.abc import Iterator
from typing import Any

from ironbench import units
from ironbench.engines.odbc import driver
from ironbench.errors import FailureError
from ironbench.host import child
from ironbench.host.child import ORPHANED, Channel, Child, answer, raise_error
from ironbench.host.child_connection import ChildChannel, Served, measured
from ironbench.model.session import Row

CONNECT_S = 15
"""Login timeout of the driver in seconds (SQL_ATTR_LOGIN_TIMEOUT)."""
_PATIENCE_S = 30.0
"""Timeout in seconds for the login and for the statements at the start of a connection. The timeout ends a login with a
driver that ignores the login timeout."""
_SILENCE_S = 20.0
"""Number of seconds without an answer after which ironbench checks whether the database is alive. The check opens a new
connection. If the database does not answer on it either, ironbench gives up."""
_PROBE_S = 10.0
"""Timeout of this check in seconds. Drivers have their own longer timeout, whose error would look like an answer of the
database."""
_STOP_S = 5.0
_ROWS_AT_ONCE = 2048
_ROWS_INSERTED = 200


def package_folder() -> str:
    """Returns the path of the package pyodbc. The package needs the system's libodbc. Raises InputError."""
    hint = "pip install 'pyodbc>=5.5,<6'; unixODBC is also required (apt install unixodbc)"
    return child.package_folder("pyodbc", "odbc", hint)


class OdbcLine(ChildChannel):
    """A connection in its own child process, so that a crash of the driver does not affect ironbench.

    Time limits are enforced by killing that process. SQL_ATTR_QUERY_TIMEOUT is not used, because drivers implement it
    differently. Some delegate it to the server, although the server may be paused or hung.
    """

    def __init__(
        self,
        connection: str,
        own: tuple[str, ...] = (),
        *,
        splits: bool = False,
        backslashes: bool = False,
        limit_s: float | None = None,
    ) -> None:
        """Opens the connection. `connection`: complete connection string. `own`: statements that run first on the
        connection. `limit_s`: time limit for connecting. Raises InputError and FailureError."""
        patience_s = _PATIENCE_S if limit_s is None else min(_PATIENCE_S, limit_s)
        self._asked = {"connection": connection, "own": own, "splits": splits, "backslashes": backslashes}
        self._deadline_s: float | None = None
        self._child = Child(__name__, driver.SUBJECT, packages=[package_folder()])
        try:
            self._child.send(self._asked)
            if not self._child.waiting(patience_s):
                raise FailureError(driver.SUBJECT, f"the driver did not connect within {units.span(patience_s)}")
            frame = self._child.receive()
            if frame is None:
                raise self._child.died("before it had connected")
            raise_error(frame[0])
            self.driver_info: dict[str, str] = frame[0]
            """Information that the driver reports about itself and the database."""
        except BaseException:
            self._child.process.kill()
            self._child.stop()
            raise
        super().__init__(self._child, self._child.died)

    def query(self, sql: str, limit_s: float | None = None) -> list[Row]:
        """Runs statements. After `limit_s`, the connection is closed and the database counts as unresponsive."""
        self._deadline_s = None if limit_s is None else time.monotonic() + limit_s
        try:
            return super().query(sql)
        finally:
            self._deadline_s = None

    def _receive(self) -> tuple[Any, bytes] | None:
        while not self._child.waiting(self._patience_s()):
            if self._deadline_s is not None and time.monotonic() >= self._deadline_s:
                raise self._given_up("no response within the limit")
            if not self._answers() and not self._child.waiting(0.0):
                raise self._given_up("the database stopped answering, both on this connection and on a new connection")
        return super()._receive()

    def _patience_s(self) -> float:
        return (
            _SILENCE_S if self._deadline_s is None else min(_SILENCE_S, max(0.0, self._deadline_s - time.monotonic()))
        )

    def _answers(self) -> bool:
        """Returns whether the database answers a request for a new connection in time. A refusal is also an answer."""
        probe = Child(__name__, driver.SUBJECT, packages=[package_folder()])
        probe.tell(self._asked)
        answered = probe.waiting(_PROBE_S)
        probe.stop(_STOP_S if answered else 0.0)
        return answered

    def _given_up(self, cause: str) -> FailureError:
        self._child.process.kill()
        return FailureError(driver.SUBJECT, cause)

    def close(self) -> None:
        super().close()
        self._child.stop(_STOP_S)


def main(parent: Channel) -> None:
    frame = parent.receive()
    if frame is None:
        return
    asked = frame[0]
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    connection = driver.connect(asked["connection"], CONNECT_S)
    cursor = connection.cursor()
    for statement in asked["own"]:
        try:
            cursor.execute(statement)
        except driver.package().Error as error:
            failure = driver.failure(error)
            raise FailureError(driver.SUBJECT, f"connection setup failed at {statement!r}: {failure.cause}") from None
    answer(parent, driver.identification(connection))
    Served(
        parent, _ConnectionAnswers(cursor, splits=asked["splits"], backslashes=asked["backslashes"]).done, cursor.cancel
    ).serve()
    connection.close()


def _leave_with(parent: Channel) -> None:
    """Ends this process when the parent has closed the channel, even if the driver is stuck in a call."""
    gone = select.poll()
    gone.register(parent.socket, 0)  # poll(2) reports a closed channel even if no events are requested
    gone.poll()
    time.sleep(_STOP_S)
    os._exit(ORPHANED)


class _ConnectionAnswers:
    """Answers the requests for one connection."""

    def __init__(self, cursor: Any, *, splits: bool, backslashes: bool) -> None:
        self._cursor = cursor
        self._splits = splits
        self._backslashes = backslashes

    def done(self, message: dict[str, str], data: bytes) -> dict[str, Any]:
        try:
            if "measure" in message:
                return {"measured": measured(self._cursor, message["measure"], _ROWS_AT_ONCE)}
            if "copy" in message:
                return self._copied(message["copy"], data)
            return self._queried(message["query"])
        except driver.package().Error as error:
            raise driver.failure(error) from None

    def _queried(self, sql: str) -> dict[str, Any]:
        columns: list[str] = []
        rows: list[Any] = []
        for statement in statements(sql, backslashes=self._backslashes) if self._splits else (sql,):
            self._cursor.execute(statement)
            while True:
                columns = [column[0] for column in self._cursor.description or ()]
                rows = self._cursor.fetchall() if columns else []
                if not self._cursor.nextset():
                    break
        return {"columns": columns, "rows": [[driver.text(value) for value in row] for row in rows]}

    def _copied(self, sql: str, data: bytes) -> dict[str, Any]:
        """Inserts rows as literals. The rows are in COPY's text format, without escapes. Each literal is converted to
        the type of its column."""
        named = _TABLE.search(sql)
        assert named is not None, sql
        table, rows = named[1], data.decode().splitlines()
        for start in range(0, len(rows), _ROWS_INSERTED):
            values = ", ".join(
                f"({', '.join(map(_literal, row.split(chr(9))))})" for row in rows[start:][:_ROWS_INSERTED]
            )
            self._cursor.execute(f"insert into {table} values {values}")
        return {"copied": len(rows)}


def _literal(value: str) -> str:
    return "null" if value == "\\N" else "'" + value.replace("'", "''") + "'"


_TABLE = re.compile(r"\b(?:copy|table)\s+(\w+)", re.IGNORECASE)
"""Pattern of the table name in a statement that is followed by a stream of rows. The pattern covers all dialects."""
_WHOLE = re.compile(
    r"\s*(create\s+(or\s+replace\s+)?(function|procedure|trigger)|begin\s+not\s+atomic|declare)\b", re.IGNORECASE
)
_STRINGS = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""
_ESCAPED = r"'(?:[^'\\]|''|\\.)*'|\"(?:[^\"\\]|\"\"|\\.)*\""
_COMMENTS = r"--[^\n]*|/\*.*?\*/"
_TEXT = r"[^\W\d][\w]*|[^;'\"`$#/\w-]+|."
_PART = re.compile(
    # E'…' has escapes, $tag$…$tag$ has none (PostgreSQL documentation, 4.1.2).
    rf"(?<=\b[eE])(?:{_ESCAPED})|(?P<tag>\$(?:[^\W\d]\w*)?\$).*?(?P=tag)|{_STRINGS}|`[^`]*`|{_COMMENTS}|{_TEXT}",
    re.DOTALL,
)
# White space must follow the two dashes of a comment (manual, "String Literals" and "Comment Syntax").
_PART_BACKSLASHES = re.compile(rf"{_ESCAPED}|`[^`]*`|--(?=\s|$)[^\n]*|#[^\n]*|/\*.*?\*/|{_TEXT}", re.DOTALL)

_NO_VALUES = ("'", '"', "`", "$", "#", "--", "/*")
"""Characters with which strings, names and comments start."""


def _parts(sql: str, *, backslashes: bool) -> Iterator[str]:
    parts = (_PART_BACKSLASHES if backslashes else _PART).finditer(sql)
    return (match[0] for match in parts)


def statements(sql: str, *, backslashes: bool = False) -> list[str]:
    """Splits a text into statements. Some statements have a body with semicolons. Such a statement extends to the end
    of the text.

    `backslashes`: whether strings and comments follow MariaDB's rules. Otherwise, they follow the rules of the standard
    and of PostgreSQL.
    """
    texts = [""]
    for part in _parts(sql, backslashes=backslashes):
        if part == ";" and not _WHOLE.match(texts[-1]):
            texts.append("")
        else:
            texts[-1] += part
    return [one for one in texts if one.strip()]


def parameters(sql: str, *, backslashes: bool = False) -> int:
    """Returns the number of parameter markers."""
    parts = _parts(sql, backslashes=backslashes)
    return sum(part.count("?") for part in parts if not (len(part) > 1 and part.startswith(_NO_VALUES)))
