"""Streams: each a thread that runs its steps one after the other, and one watch over all of them.

Threads of Python are enough here: a step takes milliseconds to hours, and from the last byte of an answer to the
submission of the next query pass some tens of microseconds (the metric `lateness_…_s` tells). Where an engine works in
a process of ours, that process knows the next query before it has ended one.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ironbench.errors import IronbenchError
from ironbench.host.line import CANCELLED
from ironbench.model.session import Eager, WorkConnection

OVER_LIMIT = "over-limit"
"""Ended by the watch, in place of a SQLSTATE."""
_CONNECTION_GONE = ("", "08", "57", "XX")
"""SQLSTATE classes after which no further query makes sense; "": the engine said nothing at all."""
_WATCH_S = 0.02
_AGAIN_S = 0.5


class StreamStep(Protocol):
    """A query or a refresh function."""

    @property
    def name(self) -> str: ...

    @property
    def line(self) -> WorkConnection: ...

    @property
    def limit_s(self) -> float: ...

    def run(self, after: StreamStep | None) -> tuple[int, float, float]:
        """Rows, and the instants of submission and end on the clock of `time.perf_counter`. IronbenchError.

        `after`: the step that follows, if any does.
        """
        ...


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    sql: str
    line: WorkConnection
    limit_s: float

    def run(self, after: StreamStep | None) -> tuple[int, float, float]:
        if isinstance(after, Query) and after.line is self.line and isinstance(self.line, Eager):
            return self.line.measure_before(self.sql, after.sql)
        return self.line.measure(self.sql)


@dataclass(frozen=True, slots=True)
class StepRun:
    """How a step went."""

    name: str
    rows: int
    submitted_s: float
    answered_s: float
    error: str = ""
    """SQLSTATE, or `over-limit`; empty: all is well."""

    @property
    def elapsed_s(self) -> float:
        """The one time of a step, of every metric. TPC-H lets that of a query last until the next one is submitted
        (2.17.3, 5.3.7.1); what passes until then is ours, not the system's, and is the metric `lateness_…_s`."""
        return self.answered_s - self.submitted_s


class Stream(threading.Thread):
    """Runs its steps until they are done, one breaks the engine, or it is told to end."""

    def __init__(self, number: int, steps: Sequence[StreamStep]) -> None:
        super().__init__(name=f"stream-{number}", daemon=True)
        self.number = number
        self.ran: list[StepRun] = []
        self.broke: IronbenchError | None = None
        self._steps = steps
        self._between = threading.Lock()
        self._current: tuple[StreamStep, float] | None = None
        self._ending = self._over_limit = False
        self._cancelled_s = float("-inf")

    def run(self) -> None:
        for step, after in itertools.zip_longest(self._steps, self._steps[1:]):
            # Whoever cancels holds the lock, so that it never hits the step after the one it meant.
            with self._between:
                if self._ending:
                    return
                began_s = time.perf_counter()
                self._current, self._over_limit = (step, began_s), False
                self._cancelled_s = float("-inf")
            try:
                done = StepRun(step.name, *step.run(after))
            except IronbenchError as error:
                done = StepRun(step.name, 0, began_s, time.perf_counter(), self._meaning(error))
                if not done.error:
                    self.broke = error
                    return
            finally:
                with self._between:
                    self._current = None
            if self.ran and self.ran[-1].answered_s > done.submitted_s:
                # What failed had ended when this one began, which an eager line does before we are told.
                self.ran[-1] = replace(self.ran[-1], answered_s=done.submitted_s)
            self.ran.append(done)

    def _meaning(self, error: IronbenchError) -> str:
        """A short name for a step that failed by itself; empty when the engine or the connection did."""
        if error.sqlstate == CANCELLED:
            return OVER_LIMIT if self._over_limit else CANCELLED
        return "" if error.sqlstate[:2] in _CONNECTION_GONE else error.sqlstate

    def hold_to_limit(self) -> None:
        with self._between:
            if self._current is not None and not self._ending:
                step, began_s = self._current
                self._over_limit = time.perf_counter() - began_s > step.limit_s
                if self._over_limit:
                    self._cancel(step)

    def end(self) -> None:
        """Cancels what runs; nothing more is begun."""
        with self._between:
            self._ending = True
            if self._current is not None:
                self._cancel(self._current[0])

    def _cancel(self, step: StreamStep) -> None:
        """Now and then again: an engine may not have begun when it is first asked to end."""
        now_s = time.perf_counter()
        if now_s - self._cancelled_s > _AGAIN_S:
            self._cancelled_s = now_s
            with contextlib.suppress(IronbenchError):  # An engine that is gone is noticed by the stream itself.
                step.line.cancel()

    @property
    def running(self) -> str:
        current = self._current
        return current[0].name if current else ""


def run(streams: Sequence[Stream], stopping: Callable[[], bool], show: Callable[[int, str], None]) -> None:
    """Starts all streams and waits for their end. Raises what broke the engine. `show`: steps done, names running."""
    for stream in streams:
        stream.start()
    while alive := [stream for stream in streams if stream.is_alive()]:
        alive[0].join(_WATCH_S)
        if stopping() or any(stream.broke for stream in streams):
            for stream in alive:
                stream.end()
        for stream in alive:
            stream.hold_to_limit()
        show(sum(len(stream.ran) for stream in streams), " ".join(filter(None, (one.running for one in alive))))
    for stream in streams:
        if stream.broke is not None:
            raise stream.broke


def gaps_s(steps: Sequence[StepRun]) -> list[float]:
    """From the last byte of each answer to the submission of the next query."""
    return [after.submitted_s - before.answered_s for before, after in itertools.pairwise(steps)]
