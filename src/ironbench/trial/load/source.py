"""Where the data of trials come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ironbench.model.secrets import Secrets
from ironbench.trial.load.loaded import Loaded


@dataclass(frozen=True, slots=True)
class DataSource:
    """Where the data come from that a trial starts with."""

    kind: str
    """`snapshot`: a copy of files; `database`: a database on a running server; `reload`: loaded anew each time;
    `as-found`: whatever the trial before left."""
    key: str = ""
    """Content key of the data."""
    folder: Path | None = None
    bytes: int = 0
    """Of the files on their device."""
    loaded: Loaded = field(default_factory=Loaded)
    secrets: Secrets = field(default_factory=Secrets)
    """For loading anew on a server that is not ours."""
    database: str = ""
    """The one that is copied."""
    state: str = ""
    """Of a template of the user's: changes when somebody changes it."""
