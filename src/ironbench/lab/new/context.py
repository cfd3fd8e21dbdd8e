"""Facts about the server, the machine and the user's files that `lab new` writes into a lab file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ironbench.engines.base import Engine

FILL_IN = "FILL-IN"
"""Prefix of placeholders that the user must replace."""


@dataclass(frozen=True, slots=True)
class LabContext:
    """The server, machine and user data for which the lab file is written."""

    engine: Engine
    dsn: str
    """DSN of the server without its password; empty if ironbench starts the server."""
    template: str
    """Name of the user's database on that server, which trials can copy; empty if unknown."""
    version: str
    settings: Mapping[str, str]
    """Current settings of the server; empty if the server is not running."""
    cores: int
    memory_bytes: int
    lacks: str = ""
    """Hint about privileges for checkpoints that the role lacks; empty if it lacks none."""
    dump: str = ""
    """Dump of the user's database, as named in the lab file; empty if none was given."""
    scripts: tuple[str, ...] = ()
    """Scripts of the user's application, as named in the lab file; empty if none were given."""
    setting: str = ""
    """Setting to vary; if empty, the first setting that is suggested for the engine."""
    index: str = ""
    """SQL file that creates the index; empty if the user gave none. The same applies to the following files."""
    before: str = ""
    after: str = ""
    other: str = ""
    """The other version (a DSN or a directory), or the server on the other machine; empty if the user gave none."""
    other_version: str = ""
    """Version of the programs in the directory `other`."""
    devices: tuple[str, ...] = ()
    """Device models to emulate; if empty, the models in `questions._DEVICES`."""
    today: float = 0.0
    """Today's peak load in transactions per second; 0 if it was not given."""
    capture: str = ""
    """Capture of production work to replay, as named in the lab file; empty if none was given."""

    @property
    def clients(self) -> int:
        return max(4, 2 * self.cores)
