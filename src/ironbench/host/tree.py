"""Reads small kernel files below a root that tests can replace. Returns None for unreadable files instead of raising
errors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True)
class Tree:
    """Access to /proc, /sys, /dev and /etc below `root`."""

    root: Path = Path("/")

    @property
    def real(self) -> bool:
        """Whether the tree belongs to the running machine and is not a copy."""
        return self.root == Path("/")

    def path(self, name: str) -> Path:
        """Returns the path of a file. `name` is the absolute path on the machine, such as `/proc/stat`."""
        return self.root / name.lstrip("/")

    def resolved(self, path: str) -> str:
        """Resolves symbolic links. In a copy, returns the path unchanged."""
        return str(Path(path).resolve()) if self.real else path

    def read(self, name: str) -> str | None:
        """Returns the stripped text of a file. Returns None if it is missing, not readable or not a regular file."""
        try:
            return self.path(name).read_bytes().decode("utf-8", "replace").strip().strip("\0")
        except (OSError, ValueError):
            return None

    def integer(self, name: str) -> int | None:
        text = self.read(name)
        try:
            return int(text) if text else None
        except ValueError:
            return None

    def size(self, name: str) -> int | None:
        """Returns a size as written by the kernel (`32K`) in bytes."""
        text = self.read(name)
        if not text:
            return None
        digits, unit = (text[:-1], text[-1]) if text[-1] in _UNITS else (text, "")
        return int(digits) * _UNITS.get(unit, 1) if digits.isdigit() else None

    def chosen(self, name: str) -> str | None:
        """Returns the word in brackets in a list such as `none [mq-deadline] bfq`. A single word needs no brackets."""
        words = (self.read(name) or "").split()
        for word in words:
            if word.startswith("[") and word.endswith("]"):
                return word[1:-1]
        return words[0] if len(words) == 1 else None

    def exists(self, name: str) -> bool:
        try:
            return self.path(name).exists()
        except OSError:
            return False

    def names(self, directory: str) -> list[str]:
        """Returns the sorted names in a directory. Returns an empty list if it cannot be listed."""
        try:
            return sorted(entry.name for entry in self.path(directory).iterdir())
        except OSError:
            return []

    def glob(self, pattern: str) -> list[str]:
        """Returns the sorted names that match, as absolute paths on the machine."""
        try:
            paths = sorted(self.root.glob(pattern.lstrip("/")))
        except OSError:
            return []
        return ["/" + str(path.relative_to(self.root)) for path in paths]

    def table(self, name: str) -> dict[str, int]:
        """Parses lines of the form `Key: number [kB]`, as in meminfo. Values with kB are returned in bytes."""
        values: dict[str, int] = {}
        for line in (self.read(name) or "").splitlines():
            key, _, rest = line.partition(":")
            words = rest.split()
            if words and words[0].isdigit():
                values[key] = int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
        return values
