"""Loads data with threads in the engine's own process, for engines whose wire protocol the core does not implement.

Imports only the standard library, because child processes import this module.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Piece = tuple[str, int, int]
"""Table, number of the first row, and number after the last row."""


class PieceQueue:
    """A thread-safe queue of pieces to load."""

    def __init__(self, pieces: Iterator[Piece]) -> None:
        self._pieces = pieces
        self._lock = threading.Lock()

    def take(self) -> Piece | None:
        with self._lock:
            return next(self._pieces, None)


def together(works: Sequence[Callable[[], None]]) -> None:
    """Runs each function in its own thread and waits for all of them."""
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def loaded(progress: Any, begin_s: float, connections: int) -> dict[str, Any]:
    """Returns the result in the format of the core's `load_rows`. `begin_s`: start time from `time.perf_counter`."""
    elapsed_s = time.perf_counter() - begin_s
    return {"rows": progress.rows, "bytes": progress.bytes, "elapsed_s": elapsed_s, "connections": connections}
