"""Limits the time of a session's statements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ironbench.errors import FailureError


@dataclass(slots=True)
class StatementLimit:
    """A time limit for each statement of a session. After the first failure, the session counts as unresponsive."""

    session: object
    limit_s: float
    unanswered: FailureError | None = None
    """Error of the first statement that exceeded the limit. Later statements fail at once with the same error."""


_QUESTIONS: ContextVar[StatementLimit | None] = ContextVar("questions", default=None)
"""The current time limit of this thread."""


class Limited:
    """Mixin class for sessions whose statements can have a time limit."""

    @contextmanager
    def limited(self, limit_s: float) -> Iterator[None]:
        """Limits the time of each statement in the `with` block, as in `model.session.RemoteSession`."""
        questions = StatementLimit(self, limit_s)
        token = _QUESTIONS.set(questions)
        try:
            yield
        finally:
            _QUESTIONS.reset(token)
        if questions.unanswered is not None:
            raise questions.unanswered

    def _limit_s(self) -> float | None:
        questions = self._questions()
        return None if questions is None else questions.limit_s

    def _questions(self) -> StatementLimit | None:
        questions = _QUESTIONS.get()
        return questions if questions is not None and questions.session is self else None
