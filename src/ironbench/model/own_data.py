"""The user's own data that trials start from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from ironbench.model.constraints import Natural


@dataclass(frozen=True, slots=True)
class OwnData:
    """A dump, or a template on a running server; then setup files; and a rule that trials must not break."""

    dump: str = ""
    """Absolute path of a file or directory."""
    setup: tuple[str, ...] = ()
    """Absolute paths of files of SQL, run one after the other when the dump is in."""
    template: str = ""
    """Name of a database on a running server, which is copied and never changed."""
    check: str = ""
    """A query that must answer true after every trial."""
    digests: tuple[str, ...] = ()
    """Of the contents of the dump, then of each setup file, when the trials were planned."""
    kind: str = ""
    """What the dump is, in words."""
    tools: str = ""
    """What it is loaded with: another version may load it otherwise."""
    bytes: Natural = 0
    """Of the dump's files."""
    data_bytes: Natural = 0
    """About how large the data are once loaded; 0: not known."""

    @property
    def imported(self) -> bool:
        """Whether trials start from data that were imported for them."""
        return bool(self.dump or self.setup or self.template)

    @property
    def files(self) -> tuple[str, ...]:
        """What `digests` are of."""
        return (*([self.dump] if self.dump else []), *self.setup)

    @property
    def key(self) -> str:
        """Same key, same data on an engine of the same basis: the contents count, not the names of files.

        What a template holds is not in it.
        """
        if not self.imported:
            return ""
        parts = (bool(self.dump), self.template, self.tools, *self.digests)
        return "own-" + hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

    @property
    def words(self) -> str:
        """Names of what is imported, in short."""
        names = [self.template, *(path.rstrip("/").rpartition("/")[2] for path in self.files)]
        return " + ".join(name for name in names if name)
