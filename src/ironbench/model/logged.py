"""Statements of a server's log, as an engine reads them for a capture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class LoggedStatement(NamedTuple):
    session: int
    """Number of the connection that ran the statement."""
    at_us: int
    """Start of the statement in microseconds since 1970."""
    text: str
    user: str
    database: str
    duration_us: int | None = None
    rows: int | None = None
    prepared: str | None = None
    """Name of the prepared statement, or None if the statement was not prepared."""
    values: Sequence[bytes | None] = ()
    """Values of the prepared statement's parameters."""
    types: str = ""
    """Types of the parameters, as codes of `Parameter` in
    crates/ironbench-core/src/wire/mysql/protocol/binary.rs."""


@dataclass(slots=True)
class LogDamage:
    """Damage and gaps that a reader found in a log."""

    unreadable: int = 0
    """Number of lines that belong to no log entry."""
    begun_before: int = 0
    """Number of sessions whose user or database is unknown, because their connection was opened before the log
    starts."""
    whole_seconds: bool = False
    """Whether the log contains times only in whole seconds."""
    truncated_archives: list[str] = field(default_factory=list)
    """Names of the compressed files whose compressed data are truncated."""
    of_triggers: int = 0
    """Number of entries that were left out because triggers ran these statements."""


class LogReader(Protocol):
    format: str
    damage: LogDamage

    def read(self, paths: Sequence[str]) -> Iterator[LoggedStatement]:
        """Yields the statements of log files. The files must be in chronological order."""
        ...
