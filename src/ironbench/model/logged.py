"""Statements in a server's log, as an engine reads them for a capture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class LoggedStatement(NamedTuple):
    session: int
    """Number of the connection."""
    transaction: int
    at_us: int
    """Start, in microseconds since 1970."""
    text: str
    template: str
    """In lower case, with `?` in place of literals."""
    command: str
    """First keyword, in lower case."""
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
    """Lines that belong to no entry."""
    begun_before: int = 0
    """Statements of connections that began before the log, so that their user or database is unknown."""
    whole_seconds: bool = False
    """Whether times are in whole seconds."""


class LogReader(Protocol):
    format: str
    damage: LogDamage

    def read(self, paths: Sequence[str]) -> Iterator[LoggedStatement]:
        """Yields the statements of files, which are in the order of time."""
        ...
