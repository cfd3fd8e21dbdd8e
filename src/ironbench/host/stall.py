"""Detects servers that no longer respond."""

from __future__ import annotations

import time
from collections.abc import Callable

from ironbench import units
from ironbench.errors import FailureError


class Stall:
    """Detects work that makes no progress because the server no longer responds.

    If the work makes no progress for `silent_s`, a query is sent over another connection. If the server does not answer
    this query, the work is given up. If the server answers, it is only busy, or only one of its processes has stopped.
    The work may then wait up to `most_s` in total.
    """

    def __init__(self, require_answer: Callable[[], None], silent_s: float, most_s: float | None = None) -> None:
        """Creates the detector. `require_answer` raises FailureError if the server does not answer. `most_s`: None for
        no limit."""
        self._require_answer = require_answer
        self._silent_s, self._most_s = silent_s, most_s
        self._done = -1
        self._since_s = self._asked_s = 0.0
        self.error: FailureError | None = None
        """Why the work was given up, or None if it was not given up."""

    def is_over(self, done: int) -> bool:
        """Returns whether the work should be given up, given its progress `done`. Must be called a few times a
        second."""
        now_s = time.monotonic()
        if self.error is not None:
            return True
        if done != self._done:
            self._done, self._since_s, self._asked_s = done, now_s, now_s
        elif self._most_s is not None and now_s - self._since_s >= self._most_s:
            cause = f"answers other connections, but made no progress for {units.span(self._most_s)}"
            self.error = FailureError("server", cause, "check for a stopped server process, or for a lock")
        elif now_s - self._asked_s >= self._silent_s:
            try:
                self._require_answer()
            except FailureError as error:
                self.error = error
            self._asked_s = time.monotonic()
        return self.error is not None
