"""Statistics of statements from which a capture can be made, without the statements' values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Values = tuple[str | None, ...]
"""A value for each parameter of a statement, as text."""


@dataclass(frozen=True, slots=True)
class StatementDigest:
    """Executions of one statement while the server was watched."""

    text: str
    """With `$1` and so on in place of literals."""
    user: str
    calls: int
    mean_s: float
    rows: int
    """Rows that all calls returned or changed."""
    values: tuple[Values, ...] = ()
    """Possible values of its parameters, drawn independently. Empty if it has none."""
    drawn: int = 0
    """Parameters whose values are from the statistics of a column."""
    made_up: int = 0
    """Parameters whose values are only of the right type."""
    refused: str = ""
    """Code of the reason why it cannot be executed again; "" if it can."""


@dataclass(frozen=True, slots=True)
class Digests:
    database: str
    began_us: int
    """Microseconds since 1970."""
    length_s: float
    sessions: int
    """Connections to the database that ran statements."""
    statements: tuple[StatementDigest, ...]
    counters: Mapping[str, int] = field(default_factory=dict)
    """Growth of the server's counters."""
    hidden: int = 0
    """Calls of statements of other roles whose texts the role may not read."""
