"""Where the data of trials comes from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ironbench.model.secrets import Secrets
from ironbench.trial.load.loaded import Loaded


@dataclass(frozen=True, slots=True)
class DataSource:
    """Where the data of a trial comes from."""

    kind: str
    """`snapshot`: a copy of files; `database`: a copy of a database on a running server; `reload`: loaded again each
    time; `as-found`: whatever the previous trial left."""
    key: str = ""
    """Content key of the data."""
    folder: Path | None = None
    bytes: int = 0
    """Size of the files on their device."""
    loaded: Loaded = field(default_factory=Loaded)
    secrets: Secrets = field(default_factory=Secrets)
    """Secrets for loading data again on a third-party server."""
    database: str = ""
    """The database that is copied."""
    state: str = ""
    """State of the user's template database; changes when the template is changed."""
