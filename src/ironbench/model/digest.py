"""Statement statistics of a server. A capture can be made from them, although they do not contain the parameter values
of the executions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ironbench.model.note import Note

Wait = Callable[[float, Callable[[], None]], None]
"""Waits for a number of seconds. Calls the function once a second while it waits."""
Values = tuple[str | None, ...]
"""The values of a statement's parameters, one for each parameter, as text."""


@dataclass(frozen=True, slots=True)
class StatementDigest:
    """All executions of one statement while the server was watched."""

    text: str
    """Text of the statement with placeholders in place of literals, for example `$1`."""
    user: str
    calls: int
    mean_s: float
    rows: int
    """Number of rows that all calls together returned or changed."""
    values: tuple[Values, ...] = ()
    """Possible sets of values for the statement's parameters. The values of each parameter were drawn independently of
    the other parameters. Empty if the statement has no parameters."""
    drawn: int = 0
    """Number of parameters whose values were drawn from the statistics of a table column."""
    made_up: int = 0
    """Number of parameters with invented values. Such a value has the right type, but may not occur in the data."""
    refused: str = ""
    """Code of the reason why the statement cannot be executed again. Empty if it can."""
    texts: tuple[str, ...] = ()
    """Possible texts of the statement with literals, if it is replayed without parameters. The literals were drawn like
    the values of parameters. `text` then has `?` in place of literals."""


@dataclass(frozen=True, slots=True)
class Digests:
    database: str
    began_us: int
    """Time at which watching began, in microseconds since 1970."""
    length_s: float
    sessions: int
    """Largest number of connections to the database at the same time."""
    statements: tuple[StatementDigest, ...]
    counters: Mapping[str, int] = field(default_factory=dict)
    """Growth of the server's counters while the server was watched."""
    hidden: int = 0
    """Number of calls of statements whose text is hidden, because other roles ran them and ironbench's role may not
    read the text."""
    notes: tuple[Note, ...] = ()
    """Notes about statements that the server did not count."""
