"""Operations on a database that is in use, as an engine that can do them describes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ironbench.host.programs import Program
from ironbench.model.record import Check
from ironbench.model.session import Remote, Session
from ironbench.model.system import System


@dataclass(frozen=True, slots=True)
class BackupRequest:
    """How a backup is wanted."""

    folder: Path
    """Not there yet."""
    format: str = "plain"
    """`plain` files, `tar`, or `discard`: read by the server, written nowhere."""
    checkpoint: str = "fast"
    """`fast` or `spread`."""
    most_bytes_per_s: int = 0
    """0: as fast as it can."""


@dataclass(frozen=True, slots=True)
class TableState:
    """What the engine knows of a table."""

    bytes: int
    """With indexes."""
    pages: int
    dead_rows: int


@dataclass(frozen=True, slots=True)
class IndexState:
    """What the engine knows of an index."""

    table_bytes: int
    bytes: int
    valid: bool
    entries: int


def answering(session: Session) -> Callable[[], None]:
    """Raises FailureError when the server of `session` does not answer: a program that works with a frozen server
    would never end."""
    return session.require_answer if isinstance(session, Remote) else lambda: None


class Maintaining(Protocol):
    @property
    def vacuums(self) -> Mapping[str, str]:
        """Kind → statement, with `{}` for the table; a kind that is not there cannot be had."""
        ...

    @property
    def index_builds(self) -> Mapping[str, str]:
        """`off` and `on` (concurrently) → statement, with `{}` for index and table."""
        ...

    @property
    def index_removal(self) -> str:
        """Statement, with `{}` for index and table."""
        ...

    @property
    def restorable(self) -> str:
        """Format of backups that `unpack` takes."""
        ...

    def require_backup(self, system: System, options: Mapping[str, str]) -> None:
        """InputError: the programs are missing, or cannot do what the options ask for."""
        ...

    def tool(self, system: System) -> str:
        """The program that makes backups, with its version."""
        ...

    def backup_bytes(self, session: Session) -> int:
        """About how large a backup of the whole server is."""
        ...

    def backup(self, system: System, session: Session, backup: BackupRequest) -> Program:
        """The command that makes one."""
        ...

    def verified(self, system: System, folder: Path) -> Check:
        """Whether a backup's files are whole."""
        ...

    def unpack(self, system: System, backup: Path, data: Path) -> Sequence[Program]:
        """Commands, one after the other, that make a data directory of ours of a backup in format `restorable`."""
        ...

    def replayed(self, system: System, session: Session, backup: Path) -> Program | None:
        """The command that fills the server that runs on that directory; None: its files hold everything."""
        ...

    def litter(self, session: Session, table: str, percent: int) -> None:
        """Makes garbage of so many rows in a hundred, which only `vacuums` take away; it is in the counters now."""
        ...

    def packed_pages(self, rows: int, row_bytes: int) -> int:
        """Of a table of wide rows that was written anew."""
        ...

    def table_state(self, session: Session, table: str) -> TableState: ...

    def index_state(self, session: Session, table: str, index: str) -> IndexState: ...
