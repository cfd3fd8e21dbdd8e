"""Streams of queries. Each stream is a thread that executes its steps one after another. A single loop supervises all
streams.

Python threads are fast enough for this. A step takes milliseconds to hours. Only some tens of microseconds pass between
the last byte of an answer and the submission of the next query (metric `lateness_…_s`). If an engine runs in a child
process of ironbench, the child process already has the next query when a query ends.
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
from ironbench.host.child_connection import CANCELLED
from ironbench.model.session import PipelinedConnection, WorkConnection

OVER_LIMIT = "over-limit"
"""Error of a step that was cancelled because it exceeded its limit. This text is used in place of an SQLSTATE."""
_CONNECTION_GONE = ("", "08", "57", "XX")
"""SQLSTATE classes of errors after which further queries cannot succeed. "" stands for an error without an SQLSTATE."""
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
        """Executes the step. Returns the number of rows, and the times of submission and completion as
        `time.perf_counter`. Raises IronbenchError. `after`: the following step, if there is one.
        """
        ...


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    sql: str
    line: WorkConnection
    limit_s: float

    def run(self, after: StreamStep | None) -> tuple[int, float, float]:
        if isinstance(after, Query) and after.line is self.line and isinstance(self.line, PipelinedConnection):
            return self.line.measure_before(self.sql, after.sql)
        return self.line.measure(self.sql)


@dataclass(frozen=True, slots=True)
class StepRun:
    """Result of a step."""

    name: str
    rows: int
    submitted_s: float
    answered_s: float
    error: str = ""
    """SQLSTATE of the error, or `over-limit`. Empty if the step succeeded."""

    @property
    def elapsed_s(self) -> float:
        """Time of a step, as used in every metric. The time ends with the last byte of the answer. In TPC-H, it ends
        only when the next query is submitted (2.17.3, 5.3.7.1). The difference is caused by ironbench and not by the
        system. This difference is reported as the metric `lateness_…_s`.
        """
        return self.answered_s - self.submitted_s


class Stream(threading.Thread):
    """A stream that executes its steps until all are done, the engine fails, or `end` is called."""

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
            # `_cancel` is called under the same lock, so that it cannot cancel the next step by mistake.
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
                # If a connection receives queries in advance, this step may have started before the failure of the
                # previous step was known here.
                self.ran[-1] = replace(self.ran[-1], answered_s=done.submitted_s)
            self.ran.append(done)

    def _meaning(self, error: IronbenchError) -> str:
        """Returns the SQLSTATE of an error, or another short name. Returns "" if the engine or the connection failed
        and not only the step."""
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
        """Cancels the running step and starts no further ones."""
        with self._between:
            self._ending = True
            if self._current is not None:
                self._cancel(self._current[0])

    def _cancel(self, step: StreamStep) -> None:
        """Cancels a step. Called repeatedly, because the engine may not have started the step at the first attempt."""
        now_s = time.perf_counter()
        if now_s - self._cancelled_s > _AGAIN_S:
            self._cancelled_s = now_s
            with contextlib.suppress(IronbenchError):  # if the engine has died, the stream reports it
                step.line.cancel()

    @property
    def running(self) -> str:
        current = self._current
        return current[0].name if current else ""


def run(streams: Sequence[Stream], stopping: Callable[[], bool], show: Callable[[int, str], None]) -> None:
    """Runs all streams until they end. Raises the error that broke the engine. `show` is called with the number of
    finished steps and the names of running ones."""
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
    """Returns the times in seconds between the last byte of each answer and the submission of the next query."""
    return [after.submitted_s - before.answered_s for before, after in itertools.pairwise(steps)]
