"""Statistics of statements from which a capture can be made. They do not contain the values with which the statements
were executed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Values = tuple[str | None, ...]
"""One value for each parameter of a statement, as text."""


@dataclass(frozen=True, slots=True)
class StatementDigest:
    """Executions of one statement while the server was watched."""

    text: str
    """Text of the statement with `$1` and so on in place of literals."""
    user: str
    calls: int
    mean_s: float
    rows: int
    """Number of rows that all calls together returned or changed."""
    values: tuple[Values, ...] = ()
    """Possible values of the statement's parameters; values of different parameters were drawn independently. Empty if
    the statement has no parameters."""
    drawn: int = 0
    """Number of parameters whose values are drawn from the statistics of a column."""
    made_up: int = 0
    """Number of parameters whose values are invented and only have the right type."""
    refused: str = ""
    """Code of the reason why the statement cannot be executed again; "" if it can."""


@dataclass(frozen=True, slots=True)
class Digests:
    database: str
    began_us: int
    """Time at which watching began, in microseconds since 1970."""
    length_s: float
    sessions: int
    """Number of connections to the database that ran statements."""
    statements: tuple[StatementDigest, ...]
    counters: Mapping[str, int] = field(default_factory=dict)
    """Growth of the server's counters while the server was watched."""
    hidden: int = 0
    """Number of calls of statements by other roles whose texts ironbench's role may not read."""
