"""Generated rows into a DuckDB file: pieces as Arrow streams, read by several cursors at a time.

Runs in the child process of a load (`ironbench.load.inside`), which alone has the file open. Only the standard library,
the core and duckdb are loaded.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

_NOT_FOR_LOADING = ("memory_limit", "max_memory", "threads", "worker_threads")
"""Limits of the system under test: what the load needs is nobody's measurement."""


def load(plan: dict[str, Any], progress: Any) -> dict[str, Any]:
    """What the core's `load_rows` does for other engines. FailureError."""
    import duckdb

    import ironbench._core as core
    from ironbench.errors import FailureError

    begin = time.perf_counter()
    generator = json.dumps(plan["generator"]).encode()
    workers = int(plan["connections"])
    waiting = _Shared(iter(core.cut_rows(generator, workers, json.dumps(plan["done"]).encode())))
    settings = {name: value for name, value in plan["engine"]["settings"].items() if name not in _NOT_FOR_LOADING}
    failures: list[Exception] = []
    try:
        database = duckdb.connect(plan["engine"]["path"], config={**settings, "threads": str(workers)})
        # Pieces come in whatever order they are made; with this, each thread writes row groups of its own.
        database.execute("set preserve_insertion_order = false")
        threads = [
            threading.Thread(target=_work, args=(database.cursor(), plan, generator, waiting, progress, failures))
            for _ in range(workers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if not failures:
            database.execute("checkpoint")
        database.close()
    except duckdb.Error as error:
        failures.append(error)
    if failures:
        cause = str(failures[0])
        full = "No space left" in cause
        hint = "free some space or choose a smaller scale; the part that was loaded is not used" if full else ""
        raise FailureError("load", cause, hint)
    elapsed_s = time.perf_counter() - begin
    return {"rows": progress.rows, "bytes": progress.bytes, "elapsed_s": elapsed_s, "connections": workers}


def _work(
    cursor: Any, plan: dict[str, Any], generator: bytes, waiting: _Shared, progress: Any, failures: list[Exception]
) -> None:
    import ironbench._core as core

    try:
        while not failures and (piece := waiting.take()) is not None:
            table, first, past = piece
            rows = core.ArrowRows(generator, table, first, past, progress)  # noqa: F841 - read by name in the statement
            note = plan["note"].replace(":table", table).replace(":first", str(first)).replace(":past", str(past))
            cursor.execute("begin")
            cursor.execute(f"insert into {table} select * from rows")
            cursor.execute(note)
            cursor.execute("commit")
    except Exception as error:
        failures.append(error)


class _Shared:
    """Pieces that nobody has taken yet."""

    def __init__(self, pieces: Iterator[tuple[str, int, int]]) -> None:
        self._pieces = pieces
        self._lock = threading.Lock()

    def take(self) -> tuple[str, int, int] | None:
        with self._lock:
            return next(self._pieces, None)
