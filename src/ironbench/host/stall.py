"""Work on a server that has stopped for good."""

from __future__ import annotations

import time
from collections.abc import Callable

from ironbench import units
from ironbench.errors import FailureError


class Stall:
    """Notices that work makes no progress because its server has stopped answering.

    Once nothing has been done for `silent_s`, a query on another connection decides. A server that answers that query
    is busy, or one of its processes is stopped while the others run: then the work may wait for `most_s` in all.
    """

    def __init__(self, require_answer: Callable[[], None], silent_s: float, most_s: float | None = None) -> None:
        """`require_answer` raises FailureError where the server does not answer. `most_s`: None: no limit."""
        self._require_answer = require_answer
        self._silent_s, self._most_s = silent_s, most_s
        self._done = -1
        self._since_s = self._asked_s = 0.0
        self.error: FailureError | None = None
        """Why the work is given up."""

    def is_over(self, done: int) -> bool:
        """Whether to give the work up, of which so much is done. To be called a few times a second."""
        now_s = time.monotonic()
        if self.error is not None:
            return True
        if done != self._done:
            self._done, self._since_s, self._asked_s = done, now_s, now_s
        elif self._most_s is not None and now_s - self._since_s >= self._most_s:
            cause = f"it answers other connections, and made no progress for {units.span(self._most_s)}"
            self.error = FailureError("server", cause, "look for a process of it that is stopped, or for a lock")
        elif now_s - self._asked_s >= self._silent_s:
            try:
                self._require_answer()
            except FailureError as error:
                self.error = error
            self._asked_s = time.monotonic()
        return self.error is not None
