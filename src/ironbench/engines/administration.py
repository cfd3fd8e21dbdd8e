"""Operations on a running engine before, during and after a trial, and the engine's counters. Engines override what
they support. The operations use the given session, and never start or stop an engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ironbench import units
from ironbench.errors import FailureError
from ironbench.host.tree import Tree
from ironbench.model.digest import Digests, Wait
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
"""Comment that marks an object as created by ironbench. If a user drops a table and creates it again, the new table
does not have this comment."""
ENTRY_MARK = "ironbench: "
"""Start of the description of a directory entry that ironbench created. The entry and all entries below it belong to
ironbench."""
BEGUN = "begun"
"""Text after `ENTRY_MARK` in the description while entries are still being loaded."""
ROOTS = "loaded-"
"""Start of the `ou` of some organizational units below a marked entry. The `description` of such a unit lists DNs of
entries that ironbench loaded outside the marked entry. Everything below these DNs also belongs to ironbench."""
DENIED = "42501"
"""SQLSTATE insufficient_privilege: the role lacks a privilege that a statement needs."""
AS_PARAMETER = ("42601", "42P18", "42P02", "42804", "42883", "22023", "22P02")
"""SQLSTATEs of errors that can occur because a literal in a statement was replaced by a parameter. Either the server
allows no parameter in this place, or the parameter's type differs from the literal's type (PostgreSQL documentation,
appendix A)."""
TABLES = "tables"
CHECKPOINT = "checkpoint"
REPLICATION = "replication"
SIZES = "sizes"
DATABASES = "databases"
"""Privileges that a role may lack on an existing server. `TABLES`: creating tables. `CHECKPOINT`: requesting
checkpoints. `REPLICATION`: replication, for copying the server. `SIZES`: reading the sizes of all of the server's
databases. `DATABASES`: creating databases."""


@dataclass(frozen=True, slots=True)
class MarkedObjects:
    """The objects in a database that ironbench created and marked."""

    database: str = ""
    tables: Mapping[str, int] = field(default_factory=dict)
    """For each table, its size in bytes. The size includes indexes and partitions. The names are written as in SQL."""
    routines: tuple[str, ...] = ()
    """Names of routines, with the types of their arguments."""
    server: str = ""
    """Identifier of the server. All addresses of the server have the same identifier."""
    databases: Mapping[str, int] = field(default_factory=dict)
    """For each database that ironbench created on the server to hold the user's own data, its size in bytes."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """For each complete database, the content key of its data."""
    entries: Mapping[str, int] = field(default_factory=dict)
    """For each DN of a directory entry, the number of entries at and below it. The number is 0 if the server does not
    report it."""

    @property
    def words(self) -> str:
        """Short description of the objects, or "" if there are no objects."""
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
    """Processes and directories of a server. The process ids and paths are those of the server's machine."""

    processes: tuple[int, ...] = ()
    """Process ids of the server. The id of the first process is enough, because its children are found through it."""
    directories: Mapping[str, str] = field(default_factory=dict)
    """For each role, the directory. Roles whose directory is unknown are missing."""
    unseen: str = ""
    """Why the server's processes cannot be seen. The text is "" if they can be seen."""


def no_checkpoint() -> FailureError:
    """Returns the error for a checkpoint on an existing server whose engine has no checkpoint statement. On such an
    engine, a checkpoint requires a change of the server's settings."""
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
        """Is called before the trial. Returns the plans of the trial's commands, and which information will be missing.
        Does not execute the commands.

        `own`: whether ironbench started the server. In this case, an available extension may be created in its
        database.
        """
        return ServerStatistics()

    def end(
        self, session: Session, begun: ServerStatistics, samples: Mapping[str, Sequence[Sample]], window_s: float
    ) -> ServerStatistics:
        """Is called after the trial. Adds the statistics that the engine's observers read at both ends of the measured
        window."""
        return begun


@dataclass(frozen=True, slots=True)
class CommitCount:
    """Number of commits that a server has counted in one database. The other fields count commits that do not belong to
    a trial."""

    server: int
    own: int
    """Number of commits of the session that reads the count, since the session started."""
    maintained: int = 0
    """Number of vacuums and analyzes of tables by background maintenance, such as autovacuum."""
    unreported: int = 0
    """Number of vacuums and analyzes that `maintained` includes although the server has not counted their commits
    yet."""
    rest_s: float = 60.0
    """Interval between two rounds of background maintenance in seconds."""


class Administration:
    marks: bool = False
    """Whether the engine can mark objects as created by ironbench. Marks distinguish these objects from the user's
    objects."""
    nothing_made: str = "this database contains no objects created by ironbench"
    """Message of a cleanup that finds nothing to remove."""

    def mark(self, session: Session, tables: Sequence[str]) -> None:
        """Marks tables as created by ironbench."""

    def marked(self, statement: str) -> str:
        """Returns a statement that creates a routine and marks it in the same transaction. `statement` only creates
        it."""
        return statement

    def unmarked_routines(self, session: Session, statements: Sequence[str]) -> Sequence[str]:
        """Returns the names of routines that `statements` would replace although ironbench did not create them."""
        return ()

    def made(self, session: Session) -> MarkedObjects:
        """Returns all marked objects. Raises FailureError."""
        return MarkedObjects()

    def remove_made(self, session: Session) -> MarkedObjects:
        """Drops either all marked objects or none. Raises FailureError if one of them is in use, or if another object
        depends on one of them."""
        return MarkedObjects()

    def remove_entries(self, session: Session, top: str) -> int:
        """Deletes a directory entry and everything below it. Returns the number of deleted entries. Raises
        FailureError."""
        raise NotImplementedError

    def require_rights(self, session: Session, needs: Collection[tuple[str, str]]) -> None:
        """Raises InputError if the session's role lacks a required privilege. `needs`: pairs of an option or a
        workload, and the privilege that it requires."""

    def warm(self, session: Session, tables: tuple[str, ...]) -> str:
        """Loads the tables (default: all) into the engine's own cache as far as they fit. Returns a description. Raises
        FailureError."""
        return ""

    def hits(self, session: Session) -> Mapping[str, int]:
        """Returns how often a block was found in the engine's cache (`hit`), and how often it was not found (`read`).
        Returns an empty mapping if the engine does not count this."""
        return {}

    def reset_statistics(self, session: Session) -> Mapping[str, str]:
        """Resets the statistics counters of a server that ironbench started. Returns a description of the reset for the
        record."""
        return {}

    def vacuum_dead_tuples(self, session: Session, tables: Sequence[str], most: float) -> Mapping[str, str]:
        """Vacuums tables with more than `most` dead tuples per live row. Returns a description for the record."""
        return {}

    def pace_checkpoints(
        self, session: Session, interval_s: float, own: bool, by_clock: bool = True
    ) -> tuple[tuple[Source, ...], Mapping[str, str]]:
        """Arranges for checkpoints at a fixed interval. Returns the sources that request them during the trial, and a
        description for the record. Raises FailureError.

        `own`: whether ironbench started the server. `by_clock`: whether the server runs without pauses. Only then may
        the server's own timer trigger checkpoints.
        """
        return (), {}

    paces_existing_server: bool = True
    """Whether `pace_checkpoints` can pace the checkpoints of an existing server."""

    checkpoint_setting: str = ""
    """Name of the setting for the checkpoint interval, or "" if the engine has no such setting."""

    def commits(self, session: Session) -> CommitCount | None:
        """Returns the number of commits that the server has counted. Returns None if it does not count them."""
        return None

    def clients(self, session: Session) -> int:
        """Returns the number of connections of ironbench's clients and observers, not counting this session."""
        return 0

    def written(self, session: Session) -> WriteCounters | None:
        """Returns the write counters. Returns None if the engine has none."""
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
    def digests(self) -> Callable[[Session, float, bool, Wait], Digests] | None:
        """Returns a function that watches a server for some time and returns which statements ran. Returns None if the
        engine has no such statistics.

        The arguments of the function are the session, the number of seconds, whether values of columns may be used, and
        a function that waits.
        """
        return None

    @property
    def examination(self) -> Examination | None:
        """Returns the examination that finds problems in a database. Returns None if the engine has none."""
        return None

    @property
    def maintaining(self) -> MaintenanceOperations:
        """Maintenance operations on a database in use. Engines without the ability `maintenance` have none."""
        raise NotImplementedError
