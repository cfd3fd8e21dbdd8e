"""The user's own data, from which trials start."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from ironbench.model.constraints import Natural


@dataclass(frozen=True, slots=True)
class OwnData:
    """The source of the user's data: a dump or a template on an existing server, optionally with setup files, and
    optionally with a check that must pass after every trial."""

    dump: str = ""
    """Absolute path of the dump, a file or directory."""
    setup: tuple[str, ...] = ()
    """Absolute paths of SQL files that run in this order after the dump was loaded."""
    template: str = ""
    """Name of a database on an existing server. Trials use copies of this database and never change it."""
    check: str = ""
    """A query that must return true after every trial."""
    digests: tuple[str, ...] = ()
    """Digests of the dump and of each setup file when the trials were planned."""
    kind: str = ""
    """Kind of the dump, in words."""
    tools: str = ""
    """Names and versions of the tools that load the dump. The versions are recorded because another version may load
    the dump differently."""
    bytes: Natural = 0
    """Size of the dump's files."""
    data_bytes: Natural = 0
    """Approximate size in bytes of the loaded data. 0 if unknown."""

    @property
    def imported(self) -> bool:
        """Whether trials start from data that were imported for them, and not from existing data."""
        return bool(self.dump or self.setup or self.template)

    @property
    def files(self) -> tuple[str, ...]:
        """The files whose digests are in `digests`, in the same order."""
        return (*([self.dump] if self.dump else []), *self.setup)

    @property
    def key(self) -> str:
        """Key of the data. If two keys are equal, the data are equal on engines of the same version. The key depends on
        the contents of files and not on their names. The contents of a template are not part of the key.
        """
        if not self.imported:
            return ""
        parts = (bool(self.dump), self.template, self.tools, *self.digests)
        return "own-" + hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

    @property
    def words(self) -> str:
        """Short names of the imported files."""
        names = [self.template, *(path.rstrip("/").rpartition("/")[2] for path in self.files)]
        return " + ".join(name for name in names if name)
