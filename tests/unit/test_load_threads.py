"""Multi-threaded loads: every piece is taken once, by any free thread."""

import threading

from ironbench.engines.load_threads import PieceQueue, together


def test_every_piece_is_taken_once_by_threads_that_end_together() -> None:
    given = [("orders", first, first + 10) for first in range(0, 1000, 10)]
    waiting, taken, lock = PieceQueue(iter(given)), list[tuple[str, int, int]](), threading.Lock()

    def work() -> None:
        while (piece := waiting.take()) is not None:
            with lock:
                taken.append(piece)

    together([work] * 4)
    assert sorted(taken) == given
    assert waiting.take() is None
