"""Ctrl-C while a workload drives itself: its trial ends soon and is kept; a second one ends everything at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Interrupt:
    """Whether somebody wants the trial to end."""

    def __init__(self) -> None:
        self._happened = False
        self._told: list[Callable[[], None]] = []

    def happened(self) -> bool:
        return self._happened

    def tell(self, what: Callable[[], None]) -> None:
        """`what` is called once, in the signal handler; at once when it has happened already."""
        self._told.append(what)
        if self._happened:
            what()

    def now(self) -> None:
        self._happened = True
        for what in self._told:
            what()


@contextmanager
def heard() -> Iterator[Interrupt]:
    """While the block lasts, Ctrl-C becomes an interrupt. Threads cannot have signals: there it is never heard."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def handler(number: int, frame: object) -> None:
        if interrupt.happened():
            raise KeyboardInterrupt
        interrupt.now()

    before = signal.signal(signal.SIGINT, handler)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
