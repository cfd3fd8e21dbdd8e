"""What a server says of a trial from the inside: its statements, tables, indexes, vacuums and plans."""

from __future__ import annotations

from dataclasses import dataclass, field

from ironbench.words import cut


@dataclass(frozen=True, slots=True)
class ScriptCommand:
    """One SQL command of a script."""

    script: str
    number: int
    """From 1, in the script."""
    text: str
    """With `$1`, `$2` … for its variables."""
    typical: str = ""
    """With values for them; empty where values come from the server's answers only, or where it is not sent."""
    sent: bool = True
    """False: the script's first transaction leaves it out, e.g. in a branch that is not taken."""


@dataclass(frozen=True, slots=True)
class StatementPlan:
    """How the server meant to run one command of a script, asked before the trial."""

    script: str
    number: int
    statement: str
    """One line, bounded."""
    text: str = ""
    steps: tuple[str, ...] = ()
    """Without costs; plans of the same steps are alike."""
    generic: bool = False
    """For any values, not for typical ones."""
    failed: str = ""
    """Why there is none."""


@dataclass(frozen=True, slots=True)
class Executed:
    """How the server did run one command of a script, by its own log."""

    script: str
    number: int
    statement: str
    count: float
    """Executions whose plan it wrote: the slow ones alone, or some."""
    slowest_s: float
    text: str
    """The plan of the slowest."""
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerStatement:
    """What one normalised statement cost the server inside the measured window."""

    text: str
    """Without the values of the user, on one line, bounded."""
    calls: float
    time_s: float
    """Execution, all calls together."""
    rows: float = 0.0
    hit_bytes: float = 0.0
    """Found in the server's own cache."""
    read_bytes: float = 0.0
    written_bytes: float = 0.0
    temp_bytes: float = 0.0
    """Written to temporary files."""
    log_bytes: float = 0.0
    examined: float = 0.0
    """Rows that were read to find them; 0: not counted."""
    temp_tables: float = 0.0
    """Temporary tables on disk."""
    io_s: float | None = None
    """Of the time, reading and writing; None: not measured by the server."""


@dataclass(frozen=True, slots=True)
class TableUse:
    """Use of one table inside the window."""

    name: str
    scans: float = 0.0
    """Of the whole table."""
    scanned_rows: float = 0.0
    index_scans: float = 0.0
    inserted: float = 0.0
    updated: float = 0.0
    deleted: float = 0.0
    hot_updated: float | None = 0.0
    """Updated without a new entry in any index; None: the server knows no such thing."""
    hit_bytes: float = 0.0
    read_bytes: float = 0.0
    dead_rows: float | None = 0.0
    """At the end; None: there are none in this sense."""
    dead_before: float | None = 0.0
    bytes: float | None = None
    """At the end, with its overflow, without indexes."""
    bytes_before: float | None = None
    vacuums: float = 0.0
    """That ended."""
    analyzes: float = 0.0
    time_s: float | None = None
    """Of the server in it; None: not measured."""
    index_rows: float = 0.0
    """Read by an index; 0: not counted."""


@dataclass(frozen=True, slots=True)
class Index:
    name: str
    table: str
    scans: float = 0.0
    rows: float = 0.0
    hit_bytes: float = 0.0
    read_bytes: float = 0.0
    time_s: float | None = None


@dataclass(frozen=True, slots=True)
class VacuumRun:
    """A vacuum that was at work inside the window."""

    table: str
    share: float
    """Of the looks at the server."""
    phases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotShown:
    """Something that the server does not show."""

    what: str
    why: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Inside:
    """All of it, of one trial. Empty lists: nothing to tell, or `missing` says why."""

    statements: tuple[ServerStatement, ...] = ()
    """Those that took most, by time, calls, blocks or log."""
    statements_s: float = 0.0
    """Time of all statements together, those not listed included."""
    tables: tuple[TableUse, ...] = ()
    indexes: tuple[Index, ...] = ()
    vacuums: tuple[VacuumRun, ...] = ()
    plans: tuple[StatementPlan, ...] = ()
    executed: tuple[Executed, ...] = ()
    missing: tuple[NotShown, ...] = ()
    doubts: tuple[str, ...] = field(default=())
    """What is known to be incomplete: counters that were reset, entries that were evicted."""

    def __bool__(self) -> bool:
        return bool(self.statements or self.tables or self.indexes or self.plans or self.missing or self.vacuums)


def without_values(command: ScriptCommand) -> str:
    """Why a command has no typical values."""
    if not command.sent:
        return "the script's first transaction does not send it, so it has no values yet"
    return "its values come from answers of the server"


NOTHING = Inside()
LONGEST = 400
"""Characters of a statement."""


def bounded(text: str) -> str:
    """On one line, with the beginning of what is long."""
    return cut(" ".join(text.split()).rstrip(";"), LONGEST)
