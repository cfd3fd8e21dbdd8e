"""Loads by threads of an engine's own process, where the core does not speak its wire: each takes piece after piece.

Only the standard library: children of ours import this.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Piece = tuple[str, int, int]
"""A table, the number of the first row, and that past the last."""


class Pieces:
    """Pieces that nobody has taken yet."""

    def __init__(self, pieces: Iterator[Piece]) -> None:
        self._pieces = pieces
        self._lock = threading.Lock()

    def take(self) -> Piece | None:
        with self._lock:
            return next(self._pieces, None)


def together(works: Sequence[Callable[[], None]]) -> None:
    """Each in a thread of its own, until all have ended."""
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def loaded(progress: Any, begin_s: float, connections: int) -> dict[str, Any]:
    """What the core's `load_rows` returns. `begin_s`: by `time.perf_counter`."""
    elapsed_s = time.perf_counter() - begin_s
    return {"rows": progress.rows, "bytes": progress.bytes, "elapsed_s": elapsed_s, "connections": connections}
