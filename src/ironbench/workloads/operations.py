"""Runs one long database operation in a separate thread, so that it can be cancelled from outside."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from ironbench.errors import IronbenchError
from ironbench.model.session import Session

_POLL_INTERVAL_S = 0.05


class Operation(Protocol):
    """A long operation. `run` raises FailureError and must end soon after another thread has called `cancel`."""

    def run(self) -> None: ...

    def cancel(self) -> None: ...


def carried_out(operation: Operation, stopping: Callable[[], bool], tell: Callable[[float], None]) -> float | None:
    """Runs the operation. Returns its duration in seconds, or None if it was cancelled. Raises the FailureError of the
    operation.

    `stopping` is called repeatedly. When it returns true, the operation is cancelled. `tell` is called repeatedly with
    the elapsed seconds.
    """
    errors = list[IronbenchError]()
    ended_s = list[float]()
    done = threading.Event()

    def work() -> None:
        try:
            operation.run()
        except IronbenchError as error:
            errors.append(error)
        finally:
            ended_s.append(time.perf_counter())
            done.set()

    thread = threading.Thread(target=work, name="operation", daemon=True)
    began_s = time.perf_counter()
    thread.start()
    cancelled = False
    while not done.wait(_POLL_INTERVAL_S):
        tell(time.perf_counter() - began_s)
        if stopping() and not cancelled:
            cancelled = True
            operation.cancel()
    thread.join()
    if cancelled:
        return None
    if errors:
        raise errors[0]
    return ended_s[0] - began_s


class SqlOperation:
    """SQL that is executed over a separate connection."""

    def __init__(self, session: Session, sql: str) -> None:
        self._sql = sql
        self._connection = session.line()

    def run(self) -> None:
        try:
            self._connection.query(self._sql)
        finally:
            self._connection.close()

    def cancel(self) -> None:
        self._connection.cancel()


class Steps:
    """A sequence of operations. An operation is created only after the previous one has ended."""

    def __init__(self, *makes: Callable[[], Operation | None]) -> None:
        self._makes = makes
        self._now: Operation | None = None
        self._cancelled = False
        self.took_s: list[float] = []

    def run(self) -> None:
        for make in self._makes:
            if self._cancelled:
                return
            began_s = time.perf_counter()
            self._now = make()
            if self._now is not None:
                self._now.run()
            self.took_s.append(time.perf_counter() - began_s)

    def cancel(self) -> None:
        self._cancelled = True
        if self._now is not None:
            self._now.cancel()
