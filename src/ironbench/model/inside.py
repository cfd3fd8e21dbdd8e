"""The server's own statistics of a trial: its statements, tables, indexes, vacuums and plans."""

from __future__ import annotations

from dataclasses import dataclass

from ironbench.model.note import Note
from ironbench.words import cut


@dataclass(frozen=True, slots=True)
class ScriptCommand:
    """A SQL command of a script."""

    script: str
    number: int
    """1-based position of the command in the script."""
    text: str
    """SQL text with `$1`, `$2` … for its variables."""
    typical: str = ""
    """SQL text with typical values in place of the variables. Empty if the values come from the server's answers, or if
    the command is not sent."""
    sent: bool = True
    """Whether the script's first transaction sends the command. For example, a command in a branch that is not taken is
    not sent."""


@dataclass(frozen=True, slots=True)
class StatementPlan:
    """Plan of one command of a script, from EXPLAIN before the trial."""

    script: str
    number: int
    statement: str
    """Text of the statement on one line, shortened."""
    text: str = ""
    steps: tuple[str, ...] = ()
    """Plan nodes without costs. Plans with equal steps count as the same plan."""
    generic: bool = False
    """Whether the plan is a generic plan instead of a plan for typical values."""
    failed: str = ""
    """Why there is no plan. Empty if there is one."""


@dataclass(frozen=True, slots=True)
class ExecutedPlan:
    """Plan with which the server executed one command of a script, from the server's log."""

    script: str
    number: int
    statement: str
    count: float
    """Number of executions whose plan the server logged. Servers log the plans of slow executions only, or of a sample
    of the executions."""
    slowest_s: float
    text: str
    """Plan of the slowest execution."""
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerStatement:
    """Cost of one normalised statement on the server inside the measured window."""

    text: str
    """Text of the statement without the user's literal values, on one line, shortened."""
    calls: float
    time_s: float
    """Execution time of all calls together, in seconds."""
    rows: float = 0.0
    hit_bytes: float = 0.0
    """Bytes that were found in the server's buffer cache."""
    read_bytes: float = 0.0
    written_bytes: float = 0.0
    temp_bytes: float = 0.0
    """Bytes written to temporary files."""
    log_bytes: float = 0.0
    examined: float = 0.0
    """Number of rows that were read to find the result. 0 if the server does not count them."""
    temp_tables: float = 0.0
    """Number of temporary tables on disk."""
    io_s: float | None = None
    """Part of `time_s` that was spent on reads and writes, or None if the server does not measure this time."""


@dataclass(frozen=True, slots=True)
class TableUse:
    """Use of one table inside the measured window."""

    name: str
    scans: float = 0.0
    """Number of sequential scans of the whole table."""
    scanned_rows: float = 0.0
    index_scans: float = 0.0
    inserted: float = 0.0
    updated: float = 0.0
    deleted: float = 0.0
    hot_updated: float | None = 0.0
    """Number of updates without a new index entry (HOT), or None if the engine has no such updates."""
    hit_bytes: float = 0.0
    read_bytes: float = 0.0
    dead_rows: float | None = 0.0
    """Number of dead tuples at the end, or None if the engine has no dead tuples."""
    dead_before: float | None = 0.0
    bytes: float | None = None
    """Size of the table at the end, including overflow storage (TOAST), without indexes."""
    bytes_before: float | None = None
    vacuums: float = 0.0
    """Number of vacuums that finished."""
    analyzes: float = 0.0
    time_s: float | None = None
    """Time that the server spent in the table, or None if the server does not measure this time."""
    index_rows: float = 0.0
    """Number of rows read through an index. 0 if the server does not count them."""


@dataclass(frozen=True, slots=True)
class IndexUse:
    name: str
    table: str
    scans: float = 0.0
    rows: float = 0.0
    hit_bytes: float = 0.0
    read_bytes: float = 0.0
    time_s: float | None = None


@dataclass(frozen=True, slots=True)
class VacuumRun:
    """A vacuum that was running inside the measured window."""

    table: str
    share: float
    """Fraction of the samples in which the vacuum was running."""
    phases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotShown:
    """Statistics that the server does not show, and the reason why it does not show them."""

    what: str
    why: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class ServerStatistics:
    """The server's statistics of one trial. A list is empty if there is nothing to report, or if the server does not
    show these statistics. In the second case, `missing` contains the reason."""

    statements: tuple[ServerStatement, ...] = ()
    """The most expensive statements by time, calls, blocks or WAL."""
    statements_s: float = 0.0
    """Time of all statements, including statements that are not listed."""
    tables: tuple[TableUse, ...] = ()
    indexes: tuple[IndexUse, ...] = ()
    vacuums: tuple[VacuumRun, ...] = ()
    plans: tuple[StatementPlan, ...] = ()
    executed: tuple[ExecutedPlan, ...] = ()
    missing: tuple[NotShown, ...] = ()
    notes: tuple[Note, ...] = ()
    """Known gaps in the statistics: counters that were reset, entries that were evicted."""

    def __bool__(self) -> bool:
        return bool(self.statements or self.tables or self.indexes or self.plans or self.missing or self.vacuums)


def without_values(command: ScriptCommand) -> str:
    """Returns the reason why a command has no typical values."""
    if not command.sent:
        return "the script's first transaction does not send it, so it has no values yet"
    return "its values come from answers of the server"


NOTHING = ServerStatistics()
LONGEST = 400
"""Maximum length of a statement in characters."""


def bounded(text: str) -> str:
    """Returns the text on one line, shortened to at most `LONGEST` characters."""
    return cut(" ".join(text.split()).rstrip(";"), LONGEST)
