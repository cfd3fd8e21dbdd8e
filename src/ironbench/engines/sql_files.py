"""Reads SQL files once and splits them into statements in the same way as the server's own client."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ironbench.engines.data_import import show_read

CHUNK_BYTES = 1 << 20


class Piece(NamedTuple):
    """A part of an SQL file, as split by crates/ironbench-data/src/statements.rs."""

    kind: str
    """Kind of the part: `sql`, `merged`, `client`, `rows`, `rows-end`, `open-text` or `open-rows`."""
    line: int
    """1-based number of the line at which `text` starts."""
    begins: int
    """Offset in `text` of the first word after white space and comments."""
    text: bytes

    @property
    def first_line(self) -> int:
        """Number of the line with the first word."""
        return self.line + self.text.count(b"\n", 0, self.begins)

    def head(self, size: int = 400) -> str:
        """Returns the start of the statement, without leading comments."""
        return self.text[self.begins : self.begins + size].decode(errors="replace")


def pieces(path: Path, dialect: str, merged: Sequence[str] = ()) -> Iterator[Piece]:
    """Yields the parts of an SQL file. `merged`: first words of statements. Consecutive statements that start with one
    of them may form a single part."""
    from ironbench._core import SqlScanner

    scanner, size = SqlScanner(dialect, list(merged)), path.stat().st_size
    with path.open("rb") as file:
        chunk = file.read(CHUNK_BYTES)
        while following := file.read(CHUNK_BYTES):
            yield from map(Piece._make, scanner.feed(chunk))
            chunk = following
            show_read(path.name, file.tell(), size)
    yield from map(Piece._make, scanner.feed(chunk, True))


def ends_with_line(path: Path, start: bytes) -> bool:
    """Returns whether one of the file's last lines starts with `start`. Several lines are checked, because users may
    have appended statements."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - (1 << 16)))
        return re.search(rb"^" + re.escape(start), file.read(), re.MULTILINE) is not None
