"""Runs trials in the process that has the database open. The core's drive loop calls a cursor for each client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ironbench.engines.client_calls import Answer, Command, Step, split_plan
from ironbench.engines.duckdb.process import LASTING, ROWS_AT_ONCE, code_of, text_of
from ironbench.errors import FailureError

_BEGINS = ("begin", "start")


class DuckdbFailure:
    """A failed statement, in the form that the core expects."""

    def __init__(self, error: Exception) -> None:
        self.sqlstate = code_of(error)
        self.cause = str(error)
        self.lasting = self.sqlstate in LASTING
        # DuckDB uses optimistic concurrency control. If two transactions write conflicting changes, the later change
        # fails at once, and its transaction can be retried (duckdb.org, "Concurrency").
        self.retryable = self.sqlstate == "Transaction" and "onflict" in self.cause


class DuckdbClient:
    """A client's cursor, which is a separate connection to the same database."""

    inside = True
    """Whether the engine executes statements in the calling thread. Other threads of the process may help."""

    def __init__(self, cursor: Any, commands: Sequence[Command]) -> None:
        self._cursor = cursor
        self._open = False
        self.steps = [self._step(text, wanted) for text, wanted, _ in commands]
        self.cancel = cursor.interrupt

    def trouble(self, error: Exception) -> DuckdbFailure:
        import duckdb

        if not isinstance(error, duckdb.Error):
            raise error  # a bug in ironbench: a retry would cause it again
        return DuckdbFailure(error)

    def rollback(self) -> None:
        if self._open:
            self._open = False
            self._cursor.execute("rollback")

    def _step(self, text: str, wanted: str) -> Step:
        cursor = self._cursor
        parts = [(sql, len(sql.named_parameters), opens) for sql, opens in _parts(text)]

        def step(values: tuple[Any, ...]) -> Answer:
            rows, at = 0, 0
            gathered: list[tuple[str, str | None]] = []
            for sql, count, opens in parts:
                cursor.execute(sql, values[at : at + count])
                at += count
                if opens is not None:
                    self._open = opens
                rows, last = 0, None
                if wanted == "gset":
                    gathered.clear()
                if opens is not None:
                    continue
                while some := cursor.fetchmany(ROWS_AT_ONCE):
                    rows += len(some)
                    last = some[-1]
                if wanted and last is not None:
                    names = (column[0] for column in cursor.description)
                    gathered += zip(names, map(text_of, last), strict=True)
            return (self._open, rows, gathered) if wanted else self._open

        return step


def _parts(text: str) -> list[tuple[Any, bool | None]]:
    """Splits a text into statements. Each statement comes with the state of the transaction after it: True for open,
    False for ended, None for unchanged. A text that cannot be parsed is returned unchanged, so that its execution fails
    with DuckDB's error."""
    import duckdb

    try:
        found = duckdb.extract_statements(text)
    except duckdb.Error:
        return [(_Unread(text), None)]
    return [(sql, _opens(sql) if sql.type == duckdb.StatementType.TRANSACTION else None) for sql in found]


def _opens(statement: Any) -> bool:
    return str(statement.query).lstrip().lower().startswith(_BEGINS)


class _Unread(str):
    """A text that DuckDB cannot parse."""

    named_parameters = ()


def drive(plan: bytes, progress: Any) -> Any:
    """Runs a trial in the child process. For engines whose wire protocol the core implements, the core's `drive` does
    this. Raises FailureError if the file cannot be opened."""
    import duckdb

    import ironbench._core as core

    engine, called = split_plan(plan)
    try:
        database = duckdb.connect(engine["path"], config=engine["settings"])
    except duckdb.Error as error:
        raise FailureError("DuckDB", str(error)) from error

    def connect(client: int, commands: Sequence[Command]) -> DuckdbClient:
        return DuckdbClient(database.cursor(), commands)

    try:
        return core.drive_called(called, connect, progress)
    finally:
        database.close()
