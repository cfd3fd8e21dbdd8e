"""Time limits of a session's statements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ironbench.errors import FailureError


@dataclass(slots=True)
class Questions:
    """Statements with a time limit."""

    session: object
    limit_s: float
    unanswered: FailureError | None = None
    """Why there is no use in asking more."""


_QUESTIONS: ContextVar[Questions | None] = ContextVar("questions", default=None)
"""Those of this thread."""


class Limited:
    """A session whose statements may have a time limit."""

    @contextmanager
    def limited(self, limit_s: float) -> Iterator[None]:
        """See `model.session.Remote`."""
        questions = Questions(self, limit_s)
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

    def _questions(self) -> Questions | None:
        questions = _QUESTIONS.get()
        return questions if questions is not None and questions.session is self else None
