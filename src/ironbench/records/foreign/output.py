"""Reads the output of other programs line by line, with a limit on its size, and removes passwords."""

from __future__ import annotations

import hashlib
import io
import math
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ironbench import units
from ironbench.catalogue import text_files
from ironbench.errors import InputError
from ironbench.model.foreign import MOST_PARTS, MOST_SECONDS, ForeignPart
from ironbench.model.redact import redacted_sql
from ironbench.model.secrets import hidden
from ironbench.words import clean, cut

MOST_BYTES = 256 << 20
MOST_RESULTS = 1000
_LONGEST_LINE = 1 << 16
_LONGEST_TEXT = 200
_LARGEST = 1e15
NUMBER = r"(\d{1,18}(?:\.\d{1,9})?(?:e[+-]?\d{1,2})?)"
"""Pattern of a number in the output of these programs; numbers are never negative."""
_NUMBER = re.compile(NUMBER)


class Output:
    """The output of another program in a file. Raises InputError if the file cannot be the output of a program, for
    example because it is binary or too large."""

    def __init__(self, path: Path, program: str) -> None:
        self.path, self._program = path, program
        try:
            # The file is opened without blocking, so that a named pipe does not wait for a writer (fifo(7)).
            raw = io.FileIO(path, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | os.O_CLOEXEC))
            with io.BufferedReader(raw) as file:
                about = os.fstat(file.fileno())
                if not stat.S_ISREG(about.st_mode):
                    raise self.refused("is not a regular file", "write the output to a file, and import that file")
                if about.st_size > MOST_BYTES:
                    cause = f"is larger than {units.memory(MOST_BYTES)}"
                    raise self.refused(cause, "import a log with fewer transactions, or a log with values per interval")
                self.head = file.read(4096)
        except (OSError, ValueError) as error:
            cause = getattr(error, "strerror", None) or str(error)
            raise self.refused(cause[:1].lower() + cause[1:], "use a file that you can read") from None
        text_files.refuse_unreadable(self.head, str(path), f"the output of {program}")

    def refused(self, cause: str, hint: str) -> InputError:
        return InputError(str(self.path), cause, hint)

    def foreign(self) -> InputError:
        """Returns the error for a file that another program wrote."""
        return self.refused(
            f"is not the output of {self._program}", "use `--from` with the name of the program that wrote the file"
        )

    def lines(self, complete: bool = False) -> Iterator[str]:
        """Yields the lines without line ends. Raises InputError if a line or the whole output is longer than these
        programs write.

        `complete`: whether to leave out a last line that has no line end.
        """
        taken = 0
        with self.path.open("rb") as file:
            while line := file.readline(_LONGEST_LINE):
                taken += len(line)
                if len(line) >= _LONGEST_LINE or taken > MOST_BYTES:
                    raise self.foreign()
                if complete and not line.endswith(b"\n"):
                    return
                yield line.decode("utf-8", errors="replace").rstrip("\r\n")

    def text(self, most_bytes: int) -> str:
        """Returns the whole text. Raises InputError if it is longer than the limit."""
        with self.path.open("rb") as file:
            data = file.read(most_bytes + 1)
        if len(data) > most_bytes:
            raise self.foreign()
        return data.decode("utf-8-sig", errors="replace")

    def digest(self) -> str:
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(slots=True)
class Result:
    """A result that is being read from the output."""

    version: str = ""
    started_at: str = ""
    elapsed_s: float | None = None
    clients: int | None = None
    facts: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    parts: list[ForeignPart] = field(default_factory=list)
    rows: list[dict[str, float]] = field(default_factory=list)
    """Rows of the time line: column → value. `t_s` is the end of the interval."""
    failed_users: int = 0
    complete: bool = False
    """Whether the program's summary was read."""

    def part(self, name: str, metrics: dict[str, float]) -> None:
        if metrics and len(self.parts) < MOST_PARTS:
            self.parts.append(ForeignPart(safe(name) or "?", metrics))

    def columns(self) -> dict[str, tuple[float | None, ...]]:
        """Returns the columns of the time line, in which `t_s` is the start of each interval. Returns an empty dict if
        the time line is too long for a record, or if an interval has no time."""
        ends = [row.get("t_s") for row in self.rows]
        if not ends or len(ends) > MOST_SECONDS or None in ends:
            return {}
        names = dict.fromkeys(name for row in self.rows for name in row)
        return {name: tuple(row.get(name) for row in self.rows) for name in names} | {"t_s": (0.0, *ends[:-1])}


def safe(text: str) -> str:
    """Prepares a text of the output for a record: one line, short, and without passwords."""
    return cut(clean(redacted_sql(hidden(text[: 4 * _LONGEST_TEXT]))).strip(), _LONGEST_TEXT)


def number(text: str) -> float | None:
    """Parses a number. Returns None for a text that is not a number, and for impossible values."""
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) and value <= _LARGEST else None


def count(text: str) -> int | None:
    """Parses a whole number above 0. Returns None for any other text."""
    value = number(text)
    return int(value) if value is not None and value >= 1 and value.is_integer() else None


def put(target: dict[str, float], name: str, text: str, factor: float = 1.0) -> None:
    """Parses a number, multiplies it by `factor`, and stores it in `target`. Does nothing if the text is not a
    number."""
    value = number(text)
    if value is not None:
        target[name] = value * factor
