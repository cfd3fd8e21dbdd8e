"""Runs trials in a child process. The core's drive loop calls one connection for each client."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from ironbench.engines.client_calls import Answer, Command, Step, split_plan
from ironbench.engines.odbc import databases, driver
from ironbench.engines.odbc.databases import DatabaseKind
from ironbench.engines.odbc.process import parameters, statements
from ironbench.errors import FailureError

CONNECT_S = 15
_CANCEL_S = 15.0
"""How many seconds a driver may take to return from a cancelled statement. After that, the process exits."""
_AGAIN_S = 0.1
_LEFT = 4
"""Exit code of a process whose driver is stuck."""
_BEGIN = re.compile(
    r"\s*(begin|start\s+transaction)(\s+(transaction|tran|work|deferred|immediate|exclusive))?\s*;?\s*$", re.I
)
_END = re.compile(r"\s*(end|commit)(\s+(transaction|tran|work))?\s*;?\s*$", re.IGNORECASE)
_ROLLBACK = re.compile(r"\s*rollback(\s+(transaction|tran|work))?\s*;?\s*$", re.IGNORECASE)
_BRACKETS = (_BEGIN, _END, _ROLLBACK)


class OdbcFailure:
    """A failed statement, in the form that the core expects."""

    def __init__(self, found: FailureError, kind: DatabaseKind) -> None:
        self.sqlstate = found.sqlstate or "driver"
        self.cause = found.cause
        self.lasting = driver.is_lasting(found)
        self.retryable = not self.lasting and (
            found.sqlstate in ("40001", *kind.retryable) or found.number in kind.retryable_numbers
        )


class OdbcClient:
    """A client's connection. The connection has a cursor for every command, so that each command is prepared only
    once."""

    def __init__(self, connection: Any, commands: Sequence[Command], kind: DatabaseKind) -> None:
        self._connection, self._kind = connection, kind
        self.inside = kind.inside
        self._error = driver.package().Error
        self._open = [False]
        """Whether a transaction is open. The value is in a list, so that all steps can change it."""
        self._cursors: list[Any] = []
        self.steps = [self._step(*command) for command in commands]
        self._cancelled_at = 0.0

    def trouble(self, error: Exception) -> OdbcFailure:
        if not isinstance(error, self._error):
            raise error  # a bug in ironbench: a retry would cause it again
        return OdbcFailure(driver.failure(error), self._kind)

    def rollback(self) -> None:
        if not self._open[0]:
            return
        self._open[0] = False
        try:
            if self._kind.calls:
                self._connection.rollback()
                self._connection.autocommit = True
            else:
                self._connection.cursor().execute("rollback")
        except self._error as error:
            # If the connection still works, the database has already rolled the transaction back.
            if self.trouble(error).lasting:
                raise

    def cancel(self) -> None:
        now = time.monotonic()
        if not self._cancelled_at:
            self._cancelled_at = now
            # Cancelling has its own thread. While a driver waits for the server, it may hold a lock, so that cancel()
            # does not return either.
            threading.Thread(target=self._cancel_all, daemon=True).start()
        elif now > self._cancelled_at + _CANCEL_S:
            sys.stderr.write(f"the ODBC driver has not returned {_CANCEL_S:.0f} s after SQLCancel\n")
            sys.stderr.flush()
            os._exit(_LEFT)

    def _cancel_all(self) -> None:
        while True:
            for cursor in self._cursors:
                with contextlib.suppress(self._error):
                    cursor.cancel()
            time.sleep(_AGAIN_S)

    def _cursor(self) -> Any:
        self._cursors.append(self._connection.cursor())
        return self._cursors[-1]

    def _step(self, text: str, wanted: str, several: bool) -> Step:
        begins, ends, rolls_back = (bool(one.match(text)) for one in (_BEGIN, _END, _ROLLBACK))
        if self._kind.calls and (begins or ends or rolls_back):
            return self._called(begins, self._connection.rollback if rolls_back else self._connection.commit)
        if begins or ends or rolls_back:
            return self._bracket(text, begins)
        if several and (self._kind.splits or self._kind.calls):
            return self._one_by_one(statements(text, backslashes=self._kind.backslashes), wanted)
        if wanted or several:
            return self._gathered(text, wanted, several)
        return self._plain(text)

    def _plain(self, text: str) -> Step:
        cursor, is_open = self._cursor(), self._open
        execute, fetchall = cursor.execute, cursor.fetchall

        def step(values: tuple[Any, ...]) -> bool:
            execute(text, values)
            if cursor.description is not None:
                fetchall()
            return is_open[0]

        return step

    def _bracket(self, text: str, begins: bool) -> Step:
        execute, is_open = self._cursor().execute, self._open

        def step(values: tuple[Any, ...]) -> bool:
            execute(text)
            is_open[0] = begins
            return begins

        return step

    def _called(self, begins: bool, end: Callable[[], None]) -> Step:
        connection, is_open = self._connection, self._open

        def step(values: tuple[Any, ...]) -> bool:
            if begins:
                connection.autocommit = False
            else:
                end()
                connection.autocommit = True
            is_open[0] = begins
            return begins

        return step

    def _one_by_one(self, texts: Sequence[str], wanted: str) -> Step:
        is_open, escapes = self._open, self._kind.backslashes
        parts = [(self._step(text, wanted, False), parameters(text, backslashes=escapes)) for text in texts]

        def step(values: tuple[Any, ...]) -> Answer:
            rows, at = 0, 0
            gathered: list[tuple[str, str | None]] = []
            for run, count in parts:
                answer = run(values[at : at + count])
                at += count
                if isinstance(answer, tuple):
                    rows = answer[1]
                    gathered = gathered + answer[2] if wanted == "aset" else answer[2]
            return (is_open[0], rows, gathered) if wanted else is_open[0]

        return step

    def _gathered(self, text: str, wanted: str, several: bool) -> Step:
        cursor, is_open = self._cursor(), self._open
        texts = statements(text, backslashes=self._kind.backslashes)
        brackets = [one for one in texts if any(bracket.match(one) for bracket in _BRACKETS)]
        begins = [bool(_BEGIN.match(one)) for one in brackets]

        def step(values: tuple[Any, ...]) -> Answer:
            # Set before execution, because the text may begin a transaction and then fail.
            is_open[0] = is_open[0] or any(begins)
            cursor.execute(text, values)
            gathered: list[tuple[str, str | None]] = []
            while True:
                names = [column[0] for column in cursor.description or ()]
                rows = cursor.fetchall() if names else []
                if wanted == "gset":
                    gathered.clear()
                if rows:
                    gathered += zip(names, map(driver.text, rows[-1]), strict=True)
                if not (several and cursor.nextset()):
                    break
            if begins:
                is_open[0] = begins[-1]
            return (is_open[0], len(rows), gathered) if wanted else is_open[0]

        return step


def drive(plan: bytes, progress: Any) -> Any:
    """Runs a trial in the child process. For engines whose wire protocol the core implements, the core's `drive` does
    this."""
    import ironbench._core as core

    engine, called = split_plan(plan)
    kind = databases.of(engine["product"])

    def connect(client: int, commands: Sequence[Command]) -> OdbcClient:
        return OdbcClient(driver.connect(engine["address"], CONNECT_S), commands, kind)

    return core.drive_called(called, connect, progress)
