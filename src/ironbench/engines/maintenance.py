"""Interface of maintenance operations on a database in use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ironbench.host.programs import Program
from ironbench.model.record import Check
from ironbench.model.session import RemoteSession, Session
from ironbench.model.system import System


@dataclass(frozen=True, slots=True)
class BackupRequest:
    """Options of a backup."""

    folder: Path
    """Target directory, which must not exist yet."""
    format: str = "plain"
    """Format of the backup: `plain` (files), `tar`, or `discard` (read by the server but not written anywhere)."""
    checkpoint: str = "fast"
    """Mode of the checkpoint that starts the backup: `fast` or `spread`."""
    most_bytes_per_s: int = 0
    """Rate limit. The value 0 means that the rate is unlimited."""


@dataclass(frozen=True, slots=True)
class TableState:
    """Size of a table, and its number of dead tuples."""

    bytes: int
    """Size of the table in bytes, including indexes."""
    pages: int
    dead_tuples: int


@dataclass(frozen=True, slots=True)
class IndexState:
    """Size and state of an index."""

    table_bytes: int
    bytes: int
    valid: bool
    entries: int


def answering(session: Session) -> Callable[[], None]:
    """Returns a function that raises FailureError if the server of `session` does not answer. A caller checks the
    server with it while a program uses the server. Otherwise, the program would wait forever for a paused server."""
    return session.require_answer if isinstance(session, RemoteSession) else lambda: None


class MaintenanceOperations(Protocol):
    @property
    def vacuums(self) -> Mapping[str, str]:
        """For each kind of vacuum, the statement, with `{}` in place of the table. Kinds that the engine does
        not support are missing."""
        ...

    @property
    def index_builds(self) -> Mapping[str, str]:
        """The statement for an ordinary index build (`off`) and for a concurrent one (`on`). The statement contains
        `{}` in place of the index and of the table."""
        ...

    @property
    def index_removal(self) -> str:
        """Statement that drops an index, with `{}` in place of the index and of the table."""
        ...

    @property
    def restorable(self) -> str:
        """Backup format that `unpack` can restore."""
        ...

    def require_backup(self, system: System, options: Mapping[str, str]) -> None:
        """Raises InputError if the backup programs are missing or do not support the options."""
        ...

    def tool(self, system: System) -> str:
        """Returns the name and version of the program that makes backups."""
        ...

    def backup_bytes(self, session: Session) -> int:
        """Returns the approximate size of a backup of the whole server."""
        ...

    def backup(self, system: System, session: Session, backup: BackupRequest) -> Program:
        """Returns the command that makes a backup."""
        ...

    def verified(self, system: System, folder: Path) -> Check:
        """Checks that the files of a backup are complete."""
        ...

    def unpack(self, system: System, backup: Path, data: Path) -> Sequence[Program]:
        """Returns commands that convert a backup in format `restorable` to a data directory. The commands must run one
        after the other."""
        ...

    def replayed(self, system: System, session: Session, backup: Path) -> Program | None:
        """Returns a command that loads a backup into a running server, whose data directory `unpack` created. Returns
        None if the data directory is already complete."""
        ...

    def make_dead_tuples(self, session: Session, table: str, percent: int) -> None:
        """Turns `percent` % of the rows into dead tuples that only the statements in `vacuums` remove. When this method
        returns, the server's counters include the dead tuples."""
        ...

    def packed_pages(self, rows: int, row_bytes: int) -> int:
        """Returns the number of pages that a table with wide rows has immediately after it was written."""
        ...

    def table_state(self, session: Session, table: str) -> TableState: ...

    def index_state(self, session: Session, table: str, index: str) -> IndexState: ...
