"""Statements of a server's log, as an engine reads them for a capture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class LoggedStatement(NamedTuple):
    session: int
    """Number of the connection that ran the statement."""
    transaction: int
    at_us: int
    """Start of the statement in microseconds since 1970."""
    text: str
    template: str
    """Text of the statement in lower case, with `?` in place of literals."""
    command: str
    """First keyword of the statement, in lower case."""
    writes: bool
    duration_us: int | None
    rows: int | None
    user: str
    database: str
    hides: bool
    """Whether a password was removed from the text."""


@dataclass(slots=True)
class LogDamage:
    """Damage and gaps that a reader found in a log."""

    unreadable: int = 0
    """Number of lines that belong to no log entry."""
    begun_before: int = 0
    """Number of statements whose user or database is unknown, because their connection was opened before the log
    starts."""
    whole_seconds: bool = False
    """Whether the log contains times only in whole seconds."""


class LogReader(Protocol):
    format: str
    damage: LogDamage

    def read(self, paths: Sequence[str]) -> Iterator[LoggedStatement]:
        """Yields the statements of log files. The files must be in chronological order."""
        ...
