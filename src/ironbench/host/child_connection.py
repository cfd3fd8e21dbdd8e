"""Connections to an engine in a child process. Statements run one after another; the next statement may be sent in
advance.

The module has both ends: `ChildChannel` sends requests, `Served` answers them. Requests are numbered from 1, so that a
cancellation never affects the next request.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from ironbench.errors import FailureError, IronbenchError
from ironbench.host.child import Channel, encode_error, raise_error
from ironbench.model.session import Row

CANCELLED = "57014"
"""SQLSTATE of a cancelled statement (query_canceled in PostgreSQL)."""
PATIENCE_S = 10.0
_AGAIN_S = 0.01


class ChildChannel:
    """The client's end of the connection. Sends one request at a time. Any thread may call `cancel`."""

    def __init__(self, channel: Channel, died: Callable[[], FailureError]) -> None:
        self._channel = channel
        self._died = died
        self._asking = threading.Lock()
        self._columns: list[str] = []
        self._awaited = 0
        """Number of the request whose answer a caller awaits, or 0 if no caller waits.

        A request that was sent in advance must not be cancelled by mistake. Therefore, this number is set to 0 before
        `_answered` is increased, and `cancel` reads it only once.
        """
        self._answered = 0
        self._announced: dict[str, Any] | None = None
        """Request that was sent in advance. No caller awaits its answer yet."""

    def measure(self, sql: str) -> tuple[int, float, float]:
        rows, submitted_s, answered_s = self._ask({"measure": sql})["measured"]
        return rows, submitted_s, answered_s

    def measure_before(self, sql: str, following: str) -> tuple[int, float, float]:
        rows, submitted_s, answered_s = self._ask({"measure": sql}, following={"measure": following})["measured"]
        return rows, submitted_s, answered_s

    def query(self, sql: str) -> list[Row]:
        """Executes one or more statements and returns the rows of the last. Raises FailureError or EngineDiedError."""
        answer = self._ask({"query": sql})
        self._columns = answer["columns"]
        return [tuple(row) for row in answer["rows"]]

    def columns(self) -> list[str]:
        """Returns the column names of the last query."""
        return self._columns

    def copy_in(self, sql: str, data: bytes) -> int:
        """Runs `COPY t (…) FROM STDIN` with data in PostgreSQL's text format. Returns the number of rows copied."""
        return int(self._ask({"copy": sql}, data)["copied"])

    def cancel(self) -> None:
        """Cancels the current request with SQLSTATE 57014. Does nothing if there is no current request."""
        if awaited := self._awaited:
            self.interrupt(awaited)

    def interrupt(self, request: int) -> None:
        """Cancels the request with that number, whether it has started or not. Has no effect if the request is already
        answered."""
        self._channel.tell({"cancel": request})

    def close(self) -> None:
        """Closes the connection. A second call has no effect."""
        if not self._awaited:
            self._let_go(PATIENCE_S)
        self._channel.close()

    def _ask(
        self, request: dict[str, Any], data: bytes = b"", following: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        with self._asking:
            if self._announced != request:
                self._let_go()
            announced, self._announced = self._announced, None
            self._awaited = self._answered + 1
            try:
                if announced is None:
                    self._channel.send(request, data)
                if following is not None:
                    self._channel.send(following)
                    self._announced = following
                frame = self._receive()
                if frame is None:
                    raise ConnectionError
                self._awaited = 0
                self._answered += 1
            except OSError as error:
                self._announced = None
                raise self._died() from error
            except KeyboardInterrupt:
                self._announced = None
                # Closing the connection ends the child. Otherwise, its answer would be taken as the answer to the next
                # request.
                self._channel.close()
                raise
            finally:
                self._awaited = 0
        answer: dict[str, Any] = frame[0]
        raise_error(answer)
        return answer

    def _receive(self) -> tuple[Any, bytes] | None:
        """Waits for the answer. Returns None if the child has ended."""
        return self._channel.receive()

    def _let_go(self, patience_s: float | None = None) -> None:
        """Cancels the request sent in advance, and receives its answer.

        If the process does not answer within `patience_s`, the caller must not send further requests.
        """
        if self._announced is not None:
            self._announced = None
            self.interrupt(self._answered + 1)
            if self._channel.waiting(patience_s):
                self._channel.receive()
                self._answered += 1


def measured(cursor: Any, sql: str, rows_at_once: int) -> tuple[int, float, float]:
    """Executes a statement for `measure` and discards its rows. Returns the number of rows, the time of submission, and
    the time of completion.

    The times are read from CLOCK_MONOTONIC (clock_gettime(2)), which is the same for all processes.
    """
    rows = 0
    submitted_s = time.perf_counter()
    cursor.execute(sql)
    while part := cursor.fetchmany(rows_at_once):
        rows += len(part)
    return rows, submitted_s, time.perf_counter()


class Served:
    """The child's end of the connection. A request may arrive before the previous request is answered."""

    def __init__(
        self, channel: Channel, done: Callable[[dict[str, Any], bytes], dict[str, Any]], interrupt: Callable[[], None]
    ) -> None:
        """Creates the end of the connection that answers requests. `done` answers a request. `interrupt` makes `done`
        raise an exception. Another thread calls `interrupt` repeatedly until `done` ends."""
        self._channel = channel
        self._done = done
        self._interrupt = interrupt
        self._requests: queue.SimpleQueue[tuple[Any, bytes] | None] = queue.SimpleQueue()
        self._number = self._cancelled = 0
        self._working = False

    def serve(self) -> None:
        """Answers requests until the client closes the connection."""
        threading.Thread(target=self._receive, daemon=True).start()
        while (request := self._requests.get()) is not None:
            answer = self._answered(*request)
            try:
                self._channel.send(answer)
            except OSError:
                break

    def is_cancelled(self) -> bool:
        """Returns whether the current request has been cancelled."""
        return self._working and self._number <= self._cancelled

    def raise_cancelled(self, *_: object) -> None:
        """Raises KeyboardInterrupt, once, if the current request has been cancelled. Used as a signal handler."""
        if self.is_cancelled():
            self._working = False
            raise KeyboardInterrupt

    def end(self) -> None:
        """Cancels the current request and all later ones. Another thread calls this method."""
        self._cancel(sys.maxsize)

    def _answered(self, message: dict[str, Any], data: bytes) -> dict[str, Any]:
        try:
            try:
                self._number += 1
                self._working = True
                self.raise_cancelled()  # for a request that was cancelled before it started
                return self._done(message, data)
            finally:
                self._working = False
        except KeyboardInterrupt:
            cancelled = FailureError("statement", "was cancelled")
            cancelled.sqlstate = CANCELLED
            return encode_error(cancelled)
        except IronbenchError as error:
            return encode_error(error)

    def _receive(self) -> None:
        while (frame := self._channel.receive()) is not None:
            if "cancel" in frame[0]:
                self._cancel(frame[0]["cancel"])
            else:
                self._requests.put(frame)
        self.end()
        self._requests.put(None)

    def _cancel(self, number: int) -> None:
        # The number never decreases: a late cancellation of an earlier request must not undo this cancellation.
        self._cancelled = max(self._cancelled, number)
        while self.is_cancelled():
            # The interrupt is repeated, because a library may lose an interrupt that arrives while a statement starts.
            self._interrupt()
            time.sleep(_AGAIN_S)
