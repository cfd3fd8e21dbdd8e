"""What is done to a running engine around a trial, and what it counts: each engine overrides what it can.

Everything is done over the session that is given; nothing here starts or stops an engine.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ironbench import units
from ironbench.errors import FailureError
from ironbench.host.tree import Tree
from ironbench.model.inside import Inside, ScriptCommand
from ironbench.model.observation import Sample, Source
from ironbench.model.session import Session
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench.engines.dialect import Dialect
    from ironbench.engines.examination import Examination
    from ironbench.engines.maintenance import Maintaining

REQUEST = "checkpoints.request"
"""Name of the source that requests checkpoints during a trial."""


@dataclass(frozen=True, slots=True)
class Written:
    """What the engine has written since its counters began."""

    log_bytes: int
    log_flushes: int
    checkpoints: int
    checkpoint_bytes: int


MARK = "made by ironbench"
"""A comment, which a server keeps with the object: a table that somebody dropped and made again has none."""
ENTRY_MARK = "ironbench: "
BEGUN = "begun"
"""What follows the mark until a load is complete."""
ROOTS = "loaded-"
"""Organizational units below a marked entry whose `ou` begins so list, as `description`, the DNs of entries that were
added outside of it; with each belongs what is below it."""
"""Begins the description of an entry of a directory below which all are ours."""
DENIED = "42501"
"""SQLSTATE insufficient_privilege: the role lacks a right that a statement needs."""
AS_PARAMETER = ("42601", "42P18", "42P02", "42804", "42883", "22023", "22P02")
"""SQLSTATE of statements in which a parameter stands where the server takes none, or has another type than a literal
would have (PostgreSQL 18 documentation, appendix A)."""
TABLES = "tables"
CHECKPOINT = "checkpoint"
REPLICATION = "replication"
SIZES = "sizes"
DATABASES = "databases"
"""What a role may lack on a server that was running already: to create tables, to request checkpoints, to copy the
server, to see how large all of its databases are, to create databases."""


@dataclass(frozen=True, slots=True)
class Made:
    """What ironbench made in a database and marked there as its own."""

    database: str = ""
    tables: Mapping[str, int] = field(default_factory=dict)
    """As SQL names them, with their bytes: indexes and partitions are counted with their table."""
    routines: tuple[str, ...] = ()
    """With the types of their arguments."""
    server: str = ""
    """Equal for every address of the same server."""
    databases: Mapping[str, int] = field(default_factory=dict)
    """On the whole server: of the user's own data, with their bytes."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Database → content key of the data that are complete in it."""
    entries: Mapping[str, int] = field(default_factory=dict)
    """In a directory: DN of an entry, and how many there are with and below it; 0: the server does not say."""

    @property
    def words(self) -> str:
        """In short; empty where nothing is."""
        parts = []
        if self.tables or self.routines:
            kinds = [counted(len(self.tables), "table")]
            kinds += [counted(len(self.routines), "routine")] if self.routines else []
            parts.append(f"{' and '.join(kinds)} in database {self.database} ({_short(self.tables)})")
        if self.databases:
            parts.append(f"{counted(len(self.databases), 'database')} ({_short(self.databases)})")
        for dn, count in self.entries.items():
            parts.append(f"{counted(count, 'entry', 'entries')}, {dn} and below" if count else f"{dn} and all below")
        return "; ".join(parts)


_NAMED = 8


def _short(sizes: Mapping[str, int]) -> str:
    names = ", ".join(list(sizes)[:_NAMED]) + (", …" if len(sizes) > _NAMED else "")
    return f"{names}; {units.stored(sum(sizes.values()))}"


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """What can be seen of a server on its machine, by its own numbers and paths there."""

    processes: tuple[int, ...] = ()
    """Its first one is enough: the others descend from it."""
    directories: Mapping[str, str] = field(default_factory=dict)
    """By role, as far as they are known."""
    unseen: str = ""
    """Why its processes are not seen; empty: they are."""


def no_checkpoint() -> FailureError:
    """For a server of others whose engine has no statement for it: a checkpoint would take changes of settings."""
    error = FailureError("checkpoint", "none is requested of a server that ironbench did not start")
    error.sqlstate = DENIED
    return error


def checkpoint(session: Session, dialect: Dialect) -> bool:
    """Requests one and waits for it; False: a server of the user's has no statement for it, or the role lacks the
    right. FailureError."""
    try:
        session.query(dialect.checkpoint())
    except FailureError as error:
        if error.sqlstate != DENIED:
            raise
        return False
    return True


class Insight:
    """What an engine can say of a trial from the inside. What it does not override says nothing."""

    def begin(self, session: Session, commands: Sequence[ScriptCommand], own: bool) -> Inside:
        """Before the trial: plans of its commands, nothing of which is run, and what will be missing.

        `own`: the server is ours, so that an extension that is at hand may be made in our database.
        """
        return Inside()

    def end(self, session: Session, begun: Inside, samples: Mapping[str, Sequence[Sample]], window_s: float) -> Inside:
        """After it: with what the engine's observers read at both ends of the measured window."""
        return begun


@dataclass(frozen=True, slots=True)
class CommitCount:
    """A server's count of commits in one database, and what it knows of commits that are nobody's transaction."""

    server: int
    own: int
    """Those of the session that reads it, over all of its life."""
    maintained: int = 0
    """Tables that background maintenance has vacuumed or analyzed, as often as it did."""
    rest_s: float = 60.0
    """Time from one round of that maintenance to the next."""


class Administration:
    marks: bool = False
    """Whether what ironbench makes can be marked, so that it can be distinguished from what others made."""

    def mark(self, session: Session, tables: Sequence[str]) -> None:
        """Marks tables."""

    def marked(self, statement: str) -> str:
        """With the mark of the routine that the statement makes, in one transaction with it."""
        return statement

    def foreign_routines(self, session: Session, statements: Sequence[str]) -> Sequence[str]:
        """Routines that are not marked and that `statements` would replace."""
        return ()

    def made(self, session: Session) -> Made:
        """What is marked. FailureError."""
        return Made()

    def remove_made(self, session: Session) -> Made:
        """Drops what is marked, all of it or nothing. FailureError: in use, or something of others depends on it."""
        return Made()

    def remove_entries(self, session: Session, top: str) -> int:
        """Of a directory: deletes the entry of that DN with all below it; how many they were. FailureError."""
        raise NotImplementedError

    def require_rights(self, session: Session, needs: Collection[tuple[str, str]]) -> None:
        """`needs`: option or workload, and the right that it needs. InputError: the session's role lacks one."""

    def warm(self, session: Session, tables: tuple[str, ...]) -> str:
        """Fills the engine's own cache with the tables (none: all), as far as they fit; how, in words. FailureError."""
        return ""

    def hits(self, session: Session) -> Mapping[str, int]:
        """Blocks found in the engine's cache, `hit`, and not, `read`, so far; empty where it does not count them."""
        return {}

    def reset_statistics(self, session: Session) -> Mapping[str, str]:
        """Counters of use begin at zero; what was done, as conditions of the trial. For servers of ours alone."""
        return {}

    def remove_garbage(self, session: Session, tables: Sequence[str], most: float) -> Mapping[str, str]:
        """Cleans tables with more dead rows than a share `most` of the live ones; what was done, as conditions."""
        return {}

    def pace_checkpoints(
        self, session: Session, interval_s: float, own: bool, by_clock: bool = True
    ) -> tuple[tuple[Source, ...], Mapping[str, str]]:
        """Sources that request checkpoints during a trial, and conditions. `own`: the server is ours; `by_clock`: it is
        not frozen meanwhile, so that its own clock may choose. FailureError."""
        return (), {}

    paces_given: bool = True
    """Whether `pace_checkpoints` does anything on a server that was running already."""

    checkpoint_setting: str = ""
    """The setting that chooses how far apart checkpoints are; "": there is none."""

    def commits(self, session: Session) -> CommitCount | None:
        """Commits counted by the server; None: it keeps no count."""
        return None

    def clients(self, session: Session) -> int:
        """Connections of clients and observers of ours, this session's own aside."""
        return 0

    def written(self, session: Session) -> Written | None:
        """None: the engine does not count what it writes."""
        return None

    def log_since_checkpoint(self, session: Session, log_bytes: int) -> int:
        """Log that a crash would have to replay; `log_bytes`: `Written.log_bytes` now."""
        return 0

    def whereabouts(self, session: Session, machine: Tree) -> Whereabouts:
        """Where the server is on a machine that may be another one. FailureError."""
        return Whereabouts(unseen="it is not known how to find its processes")

    insight: Insight = Insight()
    """What it says of a trial from the inside."""

    @property
    def examination(self) -> Examination | None:
        """What looks for what spoils a database; None: nothing does."""
        return None

    @property
    def maintaining(self) -> Maintaining:
        """Operations on a database in use. Only asked of engines with the ability `maintenance`."""
        raise NotImplementedError
