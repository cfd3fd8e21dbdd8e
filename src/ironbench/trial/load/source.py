"""The origin of the data from which trials start."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ironbench.model.secrets import Secrets
from ironbench.trial.load.loaded import Loaded


@dataclass(frozen=True, slots=True)
class DataSource:
    """The origin of the data from which a trial starts."""

    kind: str
    """Kind of the source: `snapshot` (a copy of files), `database` (a copy of a database on a running server), `reload`
    (loaded again each time), or `as-found` (whatever the previous trial left behind)."""
    key: str = ""
    """Content key of the data."""
    folder: Path | None = None
    bytes: int = 0
    """Size of the files on their device, in bytes."""
    loaded: Loaded = field(default_factory=Loaded)
    secrets: Secrets = field(default_factory=Secrets)
    """Secrets for loading data again on an existing server."""
    database: str = ""
    """Name of the database that is copied."""
    state: str = ""
    """A text that identifies the state of the user's template database. The text changes when the template is
    changed."""
