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
    """1-based position in the script."""
    text: str
    """SQL text with `$1`, `$2` … for its variables."""
    typical: str = ""
    """SQL text with typical values in place of the variables; empty if these values come from the server's answers, or
    if the command is not sent."""
    sent: bool = True
    """False: the script's first transaction skips the command, e.g. in a branch that is not taken."""


@dataclass(frozen=True, slots=True)
class StatementPlan:
    """Plan of one command of a script, from an EXPLAIN before the trial."""

    script: str
    number: int
    statement: str
    """Text of the statement on one line, shortened."""
    text: str = ""
    steps: tuple[str, ...] = ()
    """Plan nodes without costs; plans with equal steps are alike."""
    generic: bool = False
    """A generic plan, instead of one for typical values."""
    failed: str = ""
    """Why there is no plan."""


@dataclass(frozen=True, slots=True)
class ExecutedPlan:
    """How the server actually ran one command of a script, from its own log."""

    script: str
    number: int
    statement: str
    count: float
    """Executions whose plan the server logged: only slow ones, or a sample."""
    slowest_s: float
    text: str
    """Plan of the slowest execution."""
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerStatement:
    """What one normalised statement cost the server inside the measured window."""

    text: str
    """Text of the statement without the user's literal values, on one line, shortened."""
    calls: float
    time_s: float
    """Execution time, total of all calls."""
    rows: float = 0.0
    hit_bytes: float = 0.0
    """Bytes found in the server's buffer cache."""
    read_bytes: float = 0.0
    written_bytes: float = 0.0
    temp_bytes: float = 0.0
    """Bytes written to temporary files."""
    log_bytes: float = 0.0
    examined: float = 0.0
    """Rows that were read to find the result; 0: not counted."""
    temp_tables: float = 0.0
    """Temporary tables on disk."""
    io_s: float | None = None
    """Part of `time_s` spent on reads and writes; None: the server does not measure it."""


@dataclass(frozen=True, slots=True)
class TableUse:
    """Use of one table inside the window."""

    name: str
    scans: float = 0.0
    """Sequential scans of the whole table."""
    scanned_rows: float = 0.0
    index_scans: float = 0.0
    inserted: float = 0.0
    updated: float = 0.0
    deleted: float = 0.0
    hot_updated: float | None = 0.0
    """Updates without a new index entry (HOT); None: the engine has no such updates."""
    hit_bytes: float = 0.0
    read_bytes: float = 0.0
    dead_rows: float | None = 0.0
    """Dead tuples at the end; None: the engine has none in this sense."""
    dead_before: float | None = 0.0
    bytes: float | None = None
    """Size at the end, including overflow storage (TOAST), without indexes."""
    bytes_before: float | None = None
    vacuums: float = 0.0
    """Vacuums that finished."""
    analyzes: float = 0.0
    time_s: float | None = None
    """Time that the server spent in the table; None: not measured."""
    index_rows: float = 0.0
    """Rows read through an index; 0: not counted."""


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
    """A vacuum that was running inside the window."""

    table: str
    share: float
    """Fraction of the samples that saw it running."""
    phases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotShown:
    """Something that the server does not show."""

    what: str
    why: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class ServerStatistics:
    """The server's statistics of one trial. An empty list means that there is nothing to report, or that `missing` says
    why."""

    statements: tuple[ServerStatement, ...] = ()
    """The most expensive statements, by time, calls, blocks or WAL."""
    statements_s: float = 0.0
    """Time of all statements, including those not listed."""
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
    """Returns the text on one line, shortened to `LONGEST` characters."""
    return cut(" ".join(text.split()).rstrip(";"), LONGEST)
