"""Operations on a running engine before, during and after a trial, and the engine's counters. Engines override what
they support.

The operations use the given session; they never start or stop an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ironbench import units
from ironbench.errors import FailureError
from ironbench.host.tree import Tree
from ironbench.model.digest import Digests
from ironbench.model.inside import ScriptCommand, ServerStatistics
from ironbench.model.observation import Sample, Source
from ironbench.model.session import Session
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench.engines.dialect import Dialect
    from ironbench.engines.examination import Examination
    from ironbench.engines.maintenance import MaintenanceOperations

REQUEST = "checkpoints.request"
"""Name of the source that requests checkpoints during a trial."""


@dataclass(frozen=True, slots=True)
class WriteCounters:
    """Volume that the engine has written since its counters were reset."""

    log_bytes: int
    log_flushes: int
    checkpoints: int
    checkpoint_bytes: int


MARK = "made by ironbench"
"""Comment on an object that ironbench created. The server stores the comment with the object, so a table that a user
has dropped and created again does not have the comment."""
ENTRY_MARK = "ironbench: "
"""Start of the description of a directory entry that ironbench created. The entry and everything below it belong to
ironbench."""
BEGUN = "begun"
"""Text that follows the mark until loading is complete."""
ROOTS = "loaded-"
"""Start of the `ou` of organizational units below a marked entry. The `description` of such a unit lists the DNs of
entries that were added outside the marked entry. Everything below those DNs also belongs to ironbench."""
DENIED = "42501"
"""SQLSTATE insufficient_privilege: the role lacks a privilege that a statement needs."""
AS_PARAMETER = ("42601", "42P18", "42P02", "42804", "42883", "22023", "22P02")
"""SQLSTATEs of errors for a statement that has a parameter where the server allows none, or a parameter whose type
differs from the literal's type (PostgreSQL documentation, appendix A)."""
TABLES = "tables"
CHECKPOINT = "checkpoint"
REPLICATION = "replication"
SIZES = "sizes"
DATABASES = "databases"
"""Privileges that a role may lack on an existing server: creating tables, requesting checkpoints, replication (for
copying the server), reading the sizes of all of the server's databases, and creating databases."""


@dataclass(frozen=True, slots=True)
class MarkedObjects:
    """The objects in a database that ironbench created and marked."""

    database: str = ""
    tables: Mapping[str, int] = field(default_factory=dict)
    """For each table name as written in SQL, its size in bytes. Indexes and partitions are counted with their table."""
    routines: tuple[str, ...] = ()
    """Names of routines, with the types of their arguments."""
    server: str = ""
    """Identifier of the server, which is the same for all of the server's addresses."""
    databases: Mapping[str, int] = field(default_factory=dict)
    """For each database that ironbench created on the server for the user's own data, its size in bytes."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """The content key of the data in each complete database."""
    entries: Mapping[str, int] = field(default_factory=dict)
    """In a directory: DN of an entry → number of entries, including the entries below it; 0 if the server does not
    report the number."""

    @property
    def words(self) -> str:
        """Short description of the objects; "" if nothing was found."""
        parts = []
        if self.tables or self.routines:
            kinds = [counted(len(self.tables), "table")]
            kinds += [counted(len(self.routines), "routine")] if self.routines else []
            parts.append(f"{' and '.join(kinds)} in database {self.database} ({_short(self.tables)})")
        if self.databases:
            parts.append(f"{counted(len(self.databases), 'database')} ({_short(self.databases)})")
        for dn, count in self.entries.items():
            below = f"{counted(count, 'entry', 'entries')} ({dn} and below)"
            parts.append(below if count else f"{dn} and all entries below")
        return "; ".join(parts)


_NAMED = 8


def _short(sizes: Mapping[str, int]) -> str:
    names = ", ".join(list(sizes)[:_NAMED]) + (", …" if len(sizes) > _NAMED else "")
    return f"{names}; {units.stored(sum(sizes.values()))}"


@dataclass(frozen=True, slots=True)
class ServerLocation:
    """Processes and directories of a server, with the process ids and paths of its machine."""

    processes: tuple[int, ...] = ()
    """Process ids of the server. The id of the first process is enough, because its children are found through it."""
    directories: Mapping[str, str] = field(default_factory=dict)
    """For each role, the directory; roles with an unknown directory are missing."""
    unseen: str = ""
    """Why the server's processes cannot be seen; "" if they can."""


def no_checkpoint() -> FailureError:
    """Returns the error for an existing server whose engine has no checkpoint statement. A checkpoint would require
    changing the server's settings."""
    error = FailureError("checkpoint", "ironbench requests checkpoints only from servers that it started")
    error.sqlstate = DENIED
    return error


def checkpoint(session: Session, dialect: Dialect) -> bool:
    """Requests a checkpoint and waits until it is complete. Returns False if the role lacks the privilege, or if the
    user's server has no statement for a checkpoint. Raises FailureError."""
    try:
        session.query(dialect.checkpoint())
    except FailureError as error:
        if error.sqlstate != DENIED:
            raise
        return False
    return True


class Insight:
    """Collects query plans and server statistics of a trial as the engine reports them. The defaults report nothing."""

    def begin(self, session: Session, commands: Sequence[ScriptCommand], own: bool) -> ServerStatistics:
        """Is called before the trial. Returns the plans of the trial's commands, without executing the commands, and
        which information will be missing.

        `own`: whether ironbench started the server, so that an available extension may be created in its database.
        """
        return ServerStatistics()

    def end(
        self, session: Session, begun: ServerStatistics, samples: Mapping[str, Sequence[Sample]], window_s: float
    ) -> ServerStatistics:
        """Is called after the trial. Adds what the engine's observers read at the start and the end of the measured
        window."""
        return begun


@dataclass(frozen=True, slots=True)
class CommitCount:
    """A server's count of commits in one database, and how many of these commits are known not to belong to a trial."""

    server: int
    own: int
    """Commits of the session that reads the count, over the session's whole lifetime."""
    maintained: int = 0
    """Number of vacuums and analyzes of tables by background maintenance."""
    unreported: int = 0
    """Number of the vacuums and analyzes in `maintained` whose commits the server has not counted yet."""
    rest_s: float = 60.0
    """Interval between two rounds of background maintenance in seconds."""


class Administration:
    marks: bool = False
    """Whether objects that ironbench creates can be marked, so that they can be distinguished from the user's."""
    nothing_made: str = "this database contains no objects created by ironbench"
    """Message of a cleanup that finds nothing to remove."""

    def mark(self, session: Session, tables: Sequence[str]) -> None:
        """Marks tables as created by ironbench."""

    def marked(self, statement: str) -> str:
        """Extends a statement that creates a routine, so that the same transaction marks the routine."""
        return statement

    def unmarked_routines(self, session: Session, statements: Sequence[str]) -> Sequence[str]:
        """Returns the names of existing routines without a mark that `statements` would replace."""
        return ()

    def made(self, session: Session) -> MarkedObjects:
        """Returns all marked objects. Raises FailureError."""
        return MarkedObjects()

    def remove_made(self, session: Session) -> MarkedObjects:
        """Drops either all marked objects or none. Raises FailureError if one of them is in use or another object
        depends on one."""
        return MarkedObjects()

    def remove_entries(self, session: Session, top: str) -> int:
        """In a directory: deletes an entry and everything below it. Returns the number of deleted entries. Raises
        FailureError."""
        raise NotImplementedError

    def require_rights(self, session: Session, needs: Collection[tuple[str, str]]) -> None:
        """Raises InputError if the session's role lacks a privilege. `needs`: pairs of an option or workload and the
        privilege that it requires."""

    def warm(self, session: Session, tables: tuple[str, ...]) -> str:
        """Loads the tables (default: all) into the engine's own cache as far as they fit. Returns a description. Raises
        FailureError."""
        return ""

    def hits(self, session: Session) -> Mapping[str, int]:
        """Returns the number of blocks that were found in the engine's cache (`hit`) and not found (`read`) so far;
        empty if the engine does not count them."""
        return {}

    def reset_statistics(self, session: Session) -> Mapping[str, str]:
        """Resets the statistics counters of a server that ironbench started. Returns conditions for the trial's record
        that describe the reset."""
        return {}

    def vacuum_dead_tuples(self, session: Session, tables: Sequence[str], most: float) -> Mapping[str, str]:
        """Vacuums tables with more than `most` dead tuples per live row. Returns conditions for the trial's record."""
        return {}

    def pace_checkpoints(
        self, session: Session, interval_s: float, own: bool, by_clock: bool = True
    ) -> tuple[tuple[Source, ...], Mapping[str, str]]:
        """Returns the sources that request checkpoints during a trial, and conditions for the trial's record. Raises
        FailureError.

        `own`: whether ironbench started the server. `by_clock`: whether the server runs without pauses, so that its own
        timer may trigger checkpoints.
        """
        return (), {}

    paces_existing_server: bool = True
    """Whether `pace_checkpoints` has an effect on an existing server."""

    checkpoint_setting: str = ""
    """Name of the setting for the checkpoint interval; "" if the engine has none."""

    def commits(self, session: Session) -> CommitCount | None:
        """Returns the number of commits that the server has counted; None if it does not count them."""
        return None

    def clients(self, session: Session) -> int:
        """Returns the number of connections of ironbench's clients and observers, not counting this session."""
        return 0

    def written(self, session: Session) -> WriteCounters | None:
        """Returns the write counters; None if the engine has none."""
        return None

    def log_since_checkpoint(self, session: Session, log_bytes: int) -> int:
        """Returns the bytes of WAL that crash recovery would replay. `log_bytes`: current value of
        `WriteCounters.log_bytes`."""
        return 0

    def locate(self, session: Session, machine: Tree) -> ServerLocation:
        """Locates the server's processes and directories on `machine`, which may be a remote machine. Raises
        FailureError."""
        return ServerLocation(unseen="ironbench cannot locate the processes of this engine")

    insight: Insight = Insight()
    """Collects query plans and server statistics for a trial."""

    @property
    def digests(self) -> Callable[[Session, float, bool, Callable[[float], None]], Digests] | None:
        """Function that watches a server for some seconds and returns which statements ran; None if the engine has no
        such statistics. Its arguments: session, seconds, whether values of columns may be used, and a function that
        waits."""
        return None

    @property
    def examination(self) -> Examination | None:
        """The examination that finds problems in a database; None if the engine has none."""
        return None

    @property
    def maintaining(self) -> MaintenanceOperations:
        """Maintenance operations on a database in use. Used only for engines with the ability `maintenance`."""
        raise NotImplementedError
