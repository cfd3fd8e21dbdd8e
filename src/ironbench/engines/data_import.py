"""How the user's own data get into an engine: each engine overrides what it can."""

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
def shown(show: Show) -> Iterator[None]:
    """Passes the progress of every file that is read meanwhile to `show`."""
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
    """A dump as it was found."""

    kind: str
    """In words, e.g. `custom dump of version 15.8`."""
    tools: str
    """Program and version that restores it."""
    data_bytes: int
    """About how large the data are once they are restored."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did."""

    objects: Mapping[str, int] = field(default_factory=dict)
    """Compared with the dump's table of contents: `tables`, `indexes`, `constraints`, `rows`, … → how many."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Kind of statement that failed and that no table, row, index or constraint depends on → how many."""
    without: str = ""
    """Extensions that were left out, in words."""
    has_end_mark: bool = True
    """False: nothing at the end of the file shows that it is complete, so a file cut between statements looks whole."""


class DataImport:
    dumps: str = ""
    """What a dump of this engine can be, in words; "": it takes none."""
    setup: bool = False
    """Whether it runs files of SQL."""
    databases: bool = False
    """Whether ironbench makes databases on a running server, so that trials on it can start from data of the user's."""
    templates: bool = False
    """Whether such a server copies a database of the user's, too."""

    def examined(self, system: System, dump: Path) -> Dump:
        """What a dump is; nothing is started. InputError: it is none, or it cannot be restored here."""
        raise InputError(
            written("data.dump"), f"engine {system.engine} takes no dumps", "leave it out, or choose another engine"
        )

    def version(self, system: System) -> str:
        """Of the server that ironbench would start; "" where a plan does not tell."""
        return ""

    def examined_setup(self, file: Path, dump: Path | None = None) -> None:
        """InputError: the file is incomplete, or reaches beyond the database. `dump`: what is loaded before it."""

    def examined_script(self, name: str, commands: Sequence[str]) -> None:
        """InputError: an SQL command of a script would reach outside of the database."""

    def placed(self, system: System, dump: Path) -> None:
        """Before the engine of a new place starts: puts the dump there, where it is the engine's own file."""

    def restored(self, session: Session, dump: Path, jobs: int, show: Show) -> Restored:
        """Loads a dump into an empty database. FailureError: what is there now must not be used."""
        return Restored()

    def set_up(self, session: Session, file: Path, show: Show, dump: Path | None = None) -> Mapping[str, int]:
        """Runs a file of SQL after `dump`, and returns what `Restored.left_out` is. FailureError with statement and
        reason."""
        return {}

    def way_out(self, session: Session, error: FailureError) -> str:
        """What to do about a query on the data that the database refuses; "": nothing is known."""
        return ""

    def settle(self, session: Session) -> None:
        """After all is in: statistics for the planner, nothing left over that a trial would pay for."""
        raise NotImplementedError

    def template_of(self, dsn: str) -> tuple[str, str]:
        """The database of the user's that a DSN names and the DSN of another one on that server, from which it can be
        copied; "" and the DSN itself where there is none."""
        return "", dsn

    def copies(self, system: System, secrets: Secrets) -> DatabaseCopies:
        """Copies of databases on a running server. Only asked where `databases`."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Copy:
    """A database that ironbench made on a running server."""

    name: str
    bytes: int
    how: str
    """In words, for the record."""


class DatabaseCopies:
    """Databases that ironbench makes, names and drops on a running server; nothing else there is changed."""

    _session: ServerSession[Any, Any]

    def close(self) -> None:
        """Ends the connection."""
        self._session.stop()

    def reconnect(self) -> None:
        """Connects anew where the server has ended the connection: by a restart, or for it did nothing. FailureError:
        nobody answers."""
        self._session.reconnect()

    def kept(self, key: str) -> Copy | None:
        """The complete database of these data that an earlier run has left."""
        raise NotImplementedError

    def abandoned(self) -> Mapping[str, int]:
        """Incomplete databases and copies of trials that nobody can need any more, as far as that is known: name →
        bytes."""
        return {}

    def new(self, key: str, template: str = "") -> Copy:
        """An incomplete database, empty or a copy. InputError: no such template, or it is in use. FailureError."""
        raise NotImplementedError

    def complete(self, copy: Copy, key: str) -> Copy:
        """All data are in it."""
        raise NotImplementedError

    def drop(self, name: str) -> None:
        """FailureError: somebody uses it. One that is not ironbench's, or not there, stays as it is."""

    def within(self, system: System, name: str) -> System:
        """The system, with another database on the same server."""
        raise NotImplementedError

    def size(self, template: str) -> int:
        """Bytes of a template."""
        raise NotImplementedError

    def state(self, template: str) -> str:
        """Changes when somebody changes what a database holds. InputError: there is none of that name."""
        raise NotImplementedError
