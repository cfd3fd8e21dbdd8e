"""Operations on a running engine around a trial, and its counters. Engines override what they support.

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
"""Comment on an object that ironbench created, stored by the server. A table that a user has dropped and created again
does not have it."""
ENTRY_MARK = "ironbench: "
"""Start of the description of a directory entry. The entry and everything below it belong to ironbench."""
BEGUN = "begun"
"""Text that follows the mark until the load is complete."""
ROOTS = "loaded-"
"""Start of the `ou` of organizational units below a marked entry. Such a unit lists, as `description`, the DNs of
entries that were added outside of the marked entry; everything below those DNs also belongs to ironbench."""
DENIED = "42501"
"""SQLSTATE insufficient_privilege: the role lacks a privilege that a statement needs."""
AS_PARAMETER = ("42601", "42P18", "42P02", "42804", "42883", "22023", "22P02")
"""SQLSTATEs for a statement that has a parameter where the server allows none, or a parameter whose type differs from
that of a literal (PostgreSQL documentation, appendix A)."""
TABLES = "tables"
CHECKPOINT = "checkpoint"
REPLICATION = "replication"
SIZES = "sizes"
DATABASES = "databases"
"""Privileges that a role may lack on an existing server: creating tables, requesting checkpoints, replication (to copy
the server), reading the sizes of all its databases, creating databases."""


@dataclass(frozen=True, slots=True)
class MarkedObjects:
    """The objects in a database that ironbench created and marked."""

    database: str = ""
    tables: Mapping[str, int] = field(default_factory=dict)
    """Name as written in SQL → bytes. Indexes and partitions are counted with their table."""
    routines: tuple[str, ...] = ()
    """Names of routines, with the types of their arguments."""
    server: str = ""
    """Identifies the server: the same value for every address of it."""
    databases: Mapping[str, int] = field(default_factory=dict)
    """Databases that ironbench created on the server for the user's own data → bytes."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Database → content key of the data, for databases that are complete."""
    entries: Mapping[str, int] = field(default_factory=dict)
    """In a directory: DN of an entry → number of entries including those below it; 0 if the server does not report
    it."""

    @property
    def words(self) -> str:
        """Short description; "" if nothing was found."""
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
    """Processes of the server. The first process is enough, because its children are found from it."""
    directories: Mapping[str, str] = field(default_factory=dict)
    """Role → directory, as far as known."""
    unseen: str = ""
    """Reason why its processes cannot be seen; "" if they can."""


def no_checkpoint() -> FailureError:
    """Returns the error for an existing server whose engine has no checkpoint statement: settings would have to be
    changed instead."""
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
    """Query plans and server statistics of a trial, as the engine reports them. The defaults report nothing."""

    def begin(self, session: Session, commands: Sequence[ScriptCommand], own: bool) -> ServerStatistics:
        """Called before the trial. Returns the plans of its commands, without executing them, and which information
        will be missing.

        `own`: ironbench started the server, so an available extension may be created in its database.
        """
        return ServerStatistics()

    def end(
        self, session: Session, begun: ServerStatistics, samples: Mapping[str, Sequence[Sample]], window_s: float
    ) -> ServerStatistics:
        """Called after the trial; adds what the engine's observers read at the start and the end of the measured
        window."""
        return begun


@dataclass(frozen=True, slots=True)
class CommitCount:
    """A server's count of commits in one database, and known commits that belong to no transaction of a trial."""

    server: int
    own: int
    """Commits of the session that reads the count, over its whole lifetime."""
    maintained: int = 0
    """Number of vacuums and analyzes of tables by background maintenance."""
    rest_s: float = 60.0
    """Interval between two rounds of background maintenance in seconds."""


class Administration:
    marks: bool = False
    """Whether objects that ironbench creates can be marked, so that they can be distinguished from others."""
    nothing_made: str = "this database contains no objects created by ironbench"
    """Sentence for a cleanup that finds nothing to remove."""

    def mark(self, session: Session, tables: Sequence[str]) -> None:
        """Marks tables as created by ironbench."""

    def marked(self, statement: str) -> str:
        """Extends a statement that creates a routine so that the same transaction marks it."""
        return statement

    def unmarked_routines(self, session: Session, statements: Sequence[str]) -> Sequence[str]:
        """Names of existing unmarked routines that `statements` would replace."""
        return ()

    def made(self, session: Session) -> MarkedObjects:
        """Returns all marked objects. Raises FailureError."""
        return MarkedObjects()

    def remove_made(self, session: Session) -> MarkedObjects:
        """Drops all marked objects or none. Raises FailureError if they are in use or another object depends on
        them."""
        return MarkedObjects()

    def remove_entries(self, session: Session, top: str) -> int:
        """For a directory: deletes an entry and everything below it; returns the number of entries. Raises
        FailureError."""
        raise NotImplementedError

    def require_rights(self, session: Session, needs: Collection[tuple[str, str]]) -> None:
        """Raises InputError if the session's role lacks a privilege. `needs`: pairs of an option or workload and the
        privilege that it requires."""

    def warm(self, session: Session, tables: tuple[str, ...]) -> str:
        """Loads the tables (default: all) into the engine's own cache, as far as they fit; describes how. Raises
        FailureError."""
        return ""

    def hits(self, session: Session) -> Mapping[str, int]:
        """Number of blocks found in the engine's cache (`hit`) and not found there (`read`) so far; empty if the engine
        does not count them."""
        return {}

    def reset_statistics(self, session: Session) -> Mapping[str, str]:
        """Resets the statistics counters; returns conditions of the trial that describe it. For servers that ironbench
        started."""
        return {}

    def vacuum_dead_rows(self, session: Session, tables: Sequence[str], most: float) -> Mapping[str, str]:
        """Vacuums tables with more dead rows than `most` times the live ones; returns conditions that describe it."""
        return {}

    def pace_checkpoints(
        self, session: Session, interval_s: float, own: bool, by_clock: bool = True
    ) -> tuple[tuple[Source, ...], Mapping[str, str]]:
        """Returns the sources that request checkpoints during a trial, and its conditions. `own`: ironbench started the
        server. `by_clock`: the server is not paused in between, so its own timer may trigger checkpoints. Raises
        FailureError."""
        return (), {}

    paces_existing_server: bool = True
    """Whether `pace_checkpoints` has any effect on an existing server."""

    checkpoint_setting: str = ""
    """Name of the setting for the checkpoint interval; "" if there is none."""

    def commits(self, session: Session) -> CommitCount | None:
        """Commits counted by the server; None if it does not count them."""
        return None

    def clients(self, session: Session) -> int:
        """Number of connections of ironbench's clients and observers, without this session."""
        return 0

    def written(self, session: Session) -> WriteCounters | None:
        """Returns the write counters; None if the engine has none."""
        return None

    def log_since_checkpoint(self, session: Session, log_bytes: int) -> int:
        """Bytes of log that crash recovery would replay. `log_bytes`: current value of `WriteCounters.log_bytes`."""
        return 0

    def locate(self, session: Session, machine: Tree) -> ServerLocation:
        """Locates the server's processes and directories on `machine`, which may be remote. Raises FailureError."""
        return ServerLocation(unseen="this engine cannot locate its processes")

    insight: Insight = Insight()
    """Collects query plans and server statistics for a trial."""

    @property
    def digests(self) -> Callable[[Session, float, bool, Callable[[float], None]], Digests] | None:
        """Watches a server for some seconds and returns what ran; None if the engine has no such statistics. The
        arguments: session, seconds, whether values of columns may be used, and a function that waits."""
        return None

    @property
    def examination(self) -> Examination | None:
        """Finds problems in a database; None if the engine has no examination."""
        return None

    @property
    def maintaining(self) -> MaintenanceOperations:
        """Maintenance operations on a database in use. Called only for engines with the ability `maintenance`."""
        raise NotImplementedError
