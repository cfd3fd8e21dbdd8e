"""Loads rows from the core's generators in a child process. Uses the fastest method that the driver supports."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from ironbench.engines.load_threads import PieceQueue, loaded, together
from ironbench.engines.odbc import databases, driver
from ironbench.engines.odbc.databases import DatabaseKind
from ironbench.errors import FailureError, IronbenchError

CONNECT_S = 15
_ROWS_AT_ONCE = 1000
Row = tuple[Any, ...]


def load(plan: dict[str, Any], progress: Any) -> dict[str, Any]:
    """Loads rows in the child process. For engines whose wire protocol the core implements, the core's `load_rows` does
    this. Raises FailureError."""
    import ironbench._core as core

    begin = time.perf_counter()
    generator = json.dumps(plan["generator"]).encode()
    done = json.dumps(plan.get("done", [])).encode()
    workers = int(plan["connections"])
    waiting = PieceQueue(iter(core.cut_rows(generator, workers, done)))
    failures: list[IronbenchError] = []

    def work() -> None:
        try:
            _work(plan, generator, waiting, progress, failures)
        except IronbenchError as error:
            failures.append(error)
        except driver.package().Error as error:
            failures.append(driver.failure(error))
        except Exception as error:  # without this, the rows of a failed thread would silently be missing
            failures.append(FailureError("load", f"{type(error).__name__}: {error}"))

    together([work] * workers)
    if failures:
        raise FailureError("load", failures[0].cause, failures[0].hint)
    return loaded(progress, begin, workers)


def _work(plan: dict[str, Any], generator: bytes, waiting: PieceQueue, progress: Any, failures: list[Any]) -> None:
    import ironbench._core as core

    engine = plan["engine"]
    kind = databases.of(engine["product"])
    connection = driver.connect(engine["address"], CONNECT_S)
    connection.autocommit = False
    cursor = connection.cursor()
    while not failures and (piece := waiting.take()) is not None:
        table, first, past = piece
        core.hand_rows(generator, table, (first, past), _ROWS_AT_ONCE, _inserting(cursor, table, kind), progress)
        if note := plan.get("note", ""):
            for name, value in (("table", table), ("first", first), ("past", past)):
                note = note.replace(f":{name}", str(value))
            cursor.execute(note)
        connection.commit()
    connection.close()


def _inserting(cursor: Any, table: str, kind: DatabaseKind) -> Callable[[Sequence[str], list[Row]], None]:
    """Returns a function that inserts a list of rows."""
    texts: dict[int, str] = {}
    cursor.fast_executemany = kind.insertion == "arrays"

    def text(columns: Sequence[str], rows: int) -> str:
        if rows not in texts:
            row = f"({', '.join('?' * len(columns))})"
            texts[rows] = f"insert into {table} ({', '.join(columns)}) values {', '.join([row] * rows)}"
        return texts[rows]

    def insert(columns: Sequence[str], rows: list[Row]) -> None:
        if kind.insertion != "rows":
            if kind.insertion == "arrays":
                # Some drivers report an unlimited length for every text. Arrays of such a length would fill the memory.
                cursor.setinputsizes([_size([row[at] for row in rows]) for at in range(len(columns))])
            cursor.executemany(text(columns, 1), rows)
            return
        at_once = max(1, kind.max_parameters // len(columns))
        for start in range(0, len(rows), at_once):
            some = rows[start : start + at_once]
            cursor.execute(text(columns, len(some)), [value for row in some for value in row])

    return insert


def _size(values: Sequence[Any]) -> tuple[int, int, int]:
    """Returns the SQL type, size and decimal digits that fit all values of a column."""
    pyodbc, known = driver.package(), [value for value in values if value is not None]
    types = {type(value) for value in known}
    if types == {int}:
        return pyodbc.SQL_BIGINT, 0, 0
    if types and types <= {int, Decimal}:
        digits = max(2, *(len(str(value).partition(".")[2]) for value in known))
        return pyodbc.SQL_DECIMAL, max(18, *(len(str(abs(int(value)))) + digits for value in known)), digits
    if types == {date}:
        return pyodbc.SQL_TYPE_DATE, 10, 0
    if types and types <= {date, datetime}:
        return pyodbc.SQL_TYPE_TIMESTAMP, 19, 0
    return pyodbc.SQL_WVARCHAR, max([1, *(len(str(value)) for value in known)]), 0
