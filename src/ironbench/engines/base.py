"""What every engine offers. One module or package per engine; its name is the engine's name."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from ironbench.machine.copies import Copied
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session
from ironbench.model.system import System


class Engine(Protocol):
    """Where a database comes from and how it is started. The core knows how to talk to it."""

    name: str
    doc: str
    """One line for `ironbench list engines`."""

    def validated(self, system: System, clients: int) -> tuple[System, Secrets]:
        """The system with absolute directories and without its password, and the password.

        Starts, makes and changes nothing. InputError for whatever cannot be used.
        """
        ...

    def identity(self, system: System, secrets: Secrets) -> dict[str, str]:
        """What tells this program from another version or build of it; starts nothing. InputError, FailureError."""
        ...

    def start(self, system: System, secrets: Secrets, clients: int) -> Session:
        """A running engine that takes `clients` connections and a few more. InputError, FailureError."""
        ...

    def basis(self, system: System) -> str:
        """What its files depend on beside the rows loaded: version, build, flags; "" where files are out of reach."""
        ...

    def plain(self, system: System, folder: Path) -> System:
        """The system that loads data for a snapshot in `folder`: only what shapes the files is kept."""
        ...

    def snapshot(self, system: System, folder: Path, *, keep: bool = True) -> Copied:
        """Copies the files of a stopped system into a new `folder`, complete or not at all. FailureError.

        Not `keep`: the files may be linked instead, for the caller removes the system's own at once.
        """
        ...

    def restore(self, system: System, folder: Path) -> Copied:
        """Makes a stopped system's files those of a snapshot. InputError: no room. FailureError.

        What no snapshot made is never removed but renamed.
        """
        ...
