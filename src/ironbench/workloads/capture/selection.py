"""Selects the statements of a capture that are replayed. The options `only` and `except` select by user, database,
application or statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ironbench.errors import InputError, nearest, written
from ironbench.workloads.capture.file import quoted

FIELDS = ("user", "database", "application", "statement")


@dataclass(frozen=True, slots=True)
class Selection:
    only: tuple[tuple[str, str], ...]
    """Fields with their patterns. A field matches if one of its patterns matches. All fields must match."""
    without: tuple[tuple[str, str], ...]
    read_only: bool = False
    """Whether transactions that change data or the schema are left out."""

    @property
    def condition(self) -> str:
        """SQL condition that is true for the selected transactions. A transaction is selected as a whole or not at
        all."""
        conditions = [
            f"bool_or({' OR '.join(_matches(name, pattern) for one, pattern in self.only if one == name)})"
            for name in FIELDS
            if any(one == name for one, _ in self.only)
        ]
        conditions += [f"NOT bool_or({_matches(name, pattern)})" for name, pattern in self.without]
        conditions += ["NOT bool_or(writes)"] if self.read_only else []
        return " AND ".join(conditions) or "true"

    def is_whole(self, database: str) -> bool:
        """Returns whether all work of the database is chosen."""
        return not self.read_only and not self.without and all(one == ("database", database) for one in self.only)


def read(options: Mapping[str, str]) -> Selection:
    """Reads the options. Raises InputError."""
    only, without = tuple(_read("only", options["only"])), tuple(_read("except", options["except"]))
    return Selection(only, without, options["read_only"] == "yes")


def _read(option: str, text: str) -> Sequence[tuple[str, str]]:
    found = []
    for part in filter(None, map(str.strip, text.split(","))):
        field, colon, pattern = part.partition(":")
        if not colon or not pattern:
            example = written("workload.with", f"{option}=application:web*")
            raise InputError(
                written("workload.with", f"{option}={text}"),
                f"{part!r} is not FIELD:PATTERN",
                f"write for example {example}",
            )
        if field not in FIELDS:
            raise InputError(
                written("workload.with", f"{option}={text}"), f"unknown field {field}", nearest(field, list(FIELDS))
            )
        found.append((field, pattern))
    return found


def _matches(field: str, pattern: str) -> str:
    if field == "statement":
        return f"template GLOB {quoted(pattern.lower())}"
    return f"{field}_name GLOB {quoted(pattern)}"
