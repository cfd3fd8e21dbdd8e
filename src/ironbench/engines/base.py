"""What every engine offers. One module or package per engine; its name is the engine's name."""

from __future__ import annotations

from typing import Protocol

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

    def start(self, system: System, secrets: Secrets, clients: int) -> Session:
        """A running engine that takes `clients` connections and a few more. InputError, FailureError."""
        ...
