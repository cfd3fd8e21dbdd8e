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
    """Name of the user's database on the server. Trials use copies of this database. Empty if the name is unknown."""
    version: str
    settings: Mapping[str, str]
    """Current settings of the server; empty if the server is not running."""
    cores: int
    memory_bytes: int
    lacks: str = ""
    """Hint about a missing privilege for checkpoints. Empty if the role has the privilege."""
    dump: str = ""
    """Dump of the user's database, as named in the lab file; empty if none was given."""
    scripts: tuple[str, ...] = ()
    """Scripts of the user's application, as named in the lab file; empty if none were given."""
    setting: str = ""
    """Setting to vary. If it is empty, the lab varies the first setting that is suggested for the engine."""
    index: str = ""
    """SQL file that creates the index. If a file is not given, this field and the next two are empty."""
    before: str = ""
    after: str = ""
    other: str = ""
    """The second system to compare: the other version (a DSN or a directory), or the server on the other machine. Empty
    if it was not given."""
    other_version: str = ""
    """Version of the programs in the directory `other`."""
    devices: tuple[str, ...] = ()
    """Device models to emulate. If it is empty, the models in `questions._DEVICES` are used."""
    today: float = 0.0
    """Today's peak load in transactions per second; 0 if it was not given."""
    capture: str = ""
    """Capture of production work to replay, as named in the lab file; empty if none was given."""

    @property
    def clients(self) -> int:
        return max(4, 2 * self.cores)
