"""Imports the user's own data into an engine. Engines override what they support."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ironbench import units
from ironbench.errors import FailureError, InputError, written
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session
from ironbench.model.system import System

if TYPE_CHECKING:
    from ironbench.engines.server_session import ServerSession

Show = Callable[[float, str], None]
_SHOW: ContextVar[Show | None] = ContextVar("show", default=None)


@contextmanager
def progress_shown(show: Show) -> Iterator[None]:
    """Calls `show` with the progress of every file that is read in the `with` block."""
    token = _SHOW.set(show)
    try:
        yield
    finally:
        _SHOW.reset(token)


def show_read(name: str, done: int, size: int) -> None:
    """Reports that `done` of the `size` bytes of a file have been read."""
    if (show := _SHOW.get()) is not None:
        show(done / max(1, size), f"{units.stored(done)} of {name}")


@dataclass(frozen=True, slots=True)
class Dump:
    """A dump and its properties."""

    kind: str
    """Description of the dump's kind, such as `custom dump of version 15.8`."""
    tools: str
    """Program, with version, that restores the dump."""
    data_bytes: int
    """Approximate size of the restored data."""


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """Result of a restore."""

    objects: Mapping[str, int] = field(default_factory=dict)
    """For each kind of object (`tables`, `indexes`, `constraints`, `rows`, …), the number of restored objects. The
    numbers were compared with the dump's table of contents."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """For each kind of statement, the number of statements that failed. No table, row, index or constraint depends on
    these statements."""
    without: str = ""
    """Text that lists the extensions that were skipped."""
    has_end_mark: bool = True
    """Whether a mark at the end shows that the file is complete. A file without the mark may have been cut off between
    two statements."""


class DataImport:
    dumps: str = ""
    """Text that lists the dump formats that the engine can import, or "" if the engine imports no dumps."""
    setup: bool = False
    """Whether the engine can run the user's SQL files."""
    databases: bool = False
    """Whether ironbench can create databases on an existing server. Trials on this server can then start from the
    user's data."""
    templates: bool = False
    """Whether ironbench can also copy one of the user's databases on an existing server."""

    def examined(self, system: System, dump: Path) -> Dump:
        """Reads the properties of a dump. Starts nothing. Raises InputError if the file is not a dump or cannot be
        restored here."""
        raise InputError(
            written("data.dump"),
            f"the engine `{system.engine}` cannot load dumps",
            "remove it, or choose another engine",
        )

    def version(self, system: System) -> str:
        """Returns the version of the server that ironbench would start. Returns "" if the system does not determine
        it."""
        return ""

    def examined_setup(self, file: Path, dump: Path | None = None) -> None:
        """Raises InputError if the SQL file is incomplete or has effects outside the database. `dump`: the dump that is
        loaded before the SQL file."""

    def examined_script(self, name: str, commands: Sequence[str]) -> None:
        """Raises InputError if an SQL command of a script would have effects outside the database."""

    def place_dump(self, system: System, dump: Path) -> None:
        """Copies the dump into a new directory, if the dump is a database file of the engine. Called before the engine
        starts in that directory."""

    def restored(self, session: Session, dump: Path, jobs: int, show: Show) -> RestoreResult:
        """Restores a dump into an empty database. Raises FailureError if the resulting database must not be used."""
        return RestoreResult()

    def set_up(self, session: Session, file: Path, show: Show, dump: Path | None = None) -> Mapping[str, int]:
        """Runs an SQL file in the database into which `dump` was restored. Returns the number of failed statements as
        in `RestoreResult.left_out`. Raises a FailureError that names the failed statement and the reason."""
        return {}

    def hint(self, session: Session, error: FailureError) -> str:
        """Returns a hint for a query that the database refuses. Returns "" if there is none."""
        return ""

    def finish_load(self, session: Session) -> None:
        """Collects planner statistics and finishes work that would otherwise disturb a trial. Is called after all data
        are loaded."""
        raise NotImplementedError

    def template_of(self, dsn: str) -> tuple[str, str]:
        """Returns the name of the user's database in a DSN, and a DSN of another database on the same server. The
        user's database must be copied through a connection to the other database. Returns "" and the unchanged DSN if
        there is no database to copy."""
        return "", dsn

    def copies(self, system: System, secrets: Secrets) -> DatabaseCopies:
        """Returns the object that creates and drops copies of databases on an existing server. Is called only if
        `databases` is true."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Copy:
    """A database that ironbench created on an existing server."""

    name: str
    bytes: int
    how: str
    """Text for the record that says how the copy was created."""


class DatabaseCopies:
    """The databases that ironbench creates on an existing server. ironbench chooses their names and drops them.
    ironbench changes nothing else on the server."""

    _session: ServerSession[Any, Any]

    def close(self) -> None:
        """Closes the connection."""
        self._session.stop()

    def reconnect(self) -> None:
        """Connects again if the server has closed the connection. The server may have restarted, or the connection was
        idle. Raises FailureError if no server answers."""
        self._session.reconnect()

    def kept(self, key: str) -> Copy | None:
        """Returns the complete database that an earlier run created with these data. Returns None if there is no such
        database."""
        raise NotImplementedError

    def abandoned(self) -> Mapping[str, int]:
        """Returns databases of ironbench that are known to be unused. These are incomplete databases and copies for
        trials. The result maps each name to a size in bytes."""
        return {}

    def new(self, key: str, template: str = "") -> Copy:
        """Creates a database and marks it as incomplete. The database is empty or a copy of `template`. Raises
        FailureError, and InputError if the template is missing or in use."""
        raise NotImplementedError

    def complete(self, copy: Copy, key: str) -> Copy:
        """Marks the database as complete."""
        raise NotImplementedError

    def drop(self, name: str) -> None:
        """Drops a database that ironbench created. Does nothing for other databases. Raises FailureError if the
        database is in use."""

    def with_database(self, system: System, name: str) -> System:
        """Returns the system with a different database on the same server."""
        raise NotImplementedError

    def size(self, template: str) -> int:
        """Returns the size of a template in bytes."""
        raise NotImplementedError

    def state(self, template: str) -> str:
        """Returns a fingerprint that changes when the contents of the database `template` change. Raises InputError if
        the database does not exist."""
        raise NotImplementedError
