"""Interface for maintenance operations on a database in use."""

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
    """Target directory, which does not exist yet."""
    format: str = "plain"
    """`plain` (files), `tar`, or `discard`: read by the server but not written anywhere."""
    checkpoint: str = "fast"
    """Checkpoint mode: `fast` or `spread`."""
    most_bytes_per_s: int = 0
    """Rate limit; 0 means unlimited."""


@dataclass(frozen=True, slots=True)
class TableState:
    """Size and dead rows of a table."""

    bytes: int
    """Size in bytes, including indexes."""
    pages: int
    dead_rows: int


@dataclass(frozen=True, slots=True)
class IndexState:
    """Size and state of an index."""

    table_bytes: int
    bytes: int
    valid: bool
    entries: int


def answering(session: Session) -> Callable[[], None]:
    """Returns a function that raises FailureError if the server of `session` does not answer. Without this check, a
    program that works with a frozen server would never end."""
    return session.require_answer if isinstance(session, RemoteSession) else lambda: None


class MaintenanceOperations(Protocol):
    @property
    def vacuums(self) -> Mapping[str, str]:
        """Kind of vacuum → statement, with `{}` for the table. Kinds that the engine lacks are missing."""
        ...

    @property
    def index_builds(self) -> Mapping[str, str]:
        """`off` and `on` (concurrently) → statement, with `{}` for index and table."""
        ...

    @property
    def index_removal(self) -> str:
        """Statement that drops an index, with `{}` for index and table."""
        ...

    @property
    def restorable(self) -> str:
        """Backup format that `unpack` accepts."""
        ...

    def require_backup(self, system: System, options: Mapping[str, str]) -> None:
        """Raises InputError if the backup programs are missing or do not support the options."""
        ...

    def tool(self, system: System) -> str:
        """Program that makes backups, with its version."""
        ...

    def backup_bytes(self, session: Session) -> int:
        """Approximate size of a backup of the whole server."""
        ...

    def backup(self, system: System, session: Session, backup: BackupRequest) -> Program:
        """Command that makes a backup."""
        ...

    def verified(self, system: System, folder: Path) -> Check:
        """Checks that the files of a backup are complete."""
        ...

    def unpack(self, system: System, backup: Path, data: Path) -> Sequence[Program]:
        """Commands that turn a backup in format `restorable` into a data directory, to be run one after the other."""
        ...

    def replayed(self, system: System, session: Session, backup: Path) -> Program | None:
        """Command that loads a backup into the server running on `unpack`'s directory; None if the files are
        complete."""
        ...

    def make_dead_rows(self, session: Session, table: str, percent: int) -> None:
        """Turns `percent` % of the rows into dead rows that only `vacuums` remove. On return, the server's counters
        include these rows."""
        ...

    def packed_pages(self, rows: int, row_bytes: int) -> int:
        """Number of pages of a freshly written table with wide rows."""
        ...

    def table_state(self, session: Session, table: str) -> TableState: ...

    def index_state(self, session: Session, table: str, index: str) -> IndexState: ...
