"""Notes: facts that a reader of results must know, as codes with values. `report.wording` turns them into sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

FLAGGED = "trials-flagged"
"""Code of the note that some compared trials are flagged."""
MISSING = "trials-missing"
"""Code of the note on planned trials that have not run yet."""
_LONGEST_CODE = 400
TEXT = "text"
"""Records before schema 4 contain notes that consist only of a sentence. The sentence is the value with this name."""


@dataclass(frozen=True, slots=True)
class NoteRange:
    """Lowest and highest value of a number in several notes that were merged."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Note:
    """A fact that a reader must know before using the results. The values are facts and not sentences, except that a
    value may be a message of an engine or a library."""

    code: str
    """Stable identifier in lower case, such as `client-saturated`."""
    values: dict[str, Any] = field(default_factory=dict)
    """Values by name: numbers, strings, or tuples of these. Merged notes also contain `NoteRange` values. A note about
    several trials or configurations may contain the `Note` that they share."""

    def __post_init__(self) -> None:
        # Child processes start without third-party packages, and errors contain notes. msgspec's Meta therefore cannot
        # do this check.
        if not self.code.isprintable() or len(self.code) > _LONGEST_CODE:
            raise ValueError("Expected a code on one line")
        if any(type(value) in (list, dict) for value in self.values.values()):
            object.__setattr__(self, "values", {name: _frozen(value) for name, value in self.values.items()})

    def __hash__(self) -> int:
        return hash((self.code, frozenset(self.values.items())))


def note(code: str, /, **values: Any) -> Note:
    """Returns a note with values by name."""
    return Note(code, values)


def text_note(text: str) -> Note:
    """Returns a note that consists only of a sentence."""
    return Note(TEXT, {TEXT: text})


def merged(notes: Iterable[Note]) -> Iterator[Note]:
    """Merges notes with the same code. The merged note contains the range of each number and all distinct strings. The
    order of the notes is kept. Notes with the same code whose values have different names are different facts and are
    not merged.
    """
    groups: dict[tuple[str, frozenset[str]], list[Note]] = {}
    for one in notes:
        groups.setdefault((one.code, frozenset(one.values)), []).append(one)
    for (code, _), same in groups.items():
        yield Note(code, {name: _together([one.values[name] for one in same]) for name in same[0].values})


def _together(values: Sequence[Any]) -> Any:
    first = values[0]
    if all(value == first for value in values):
        return first
    if all(isinstance(value, int | float | NoteRange) for value in values):
        ends = [(one.low, one.high) if isinstance(one, NoteRange) else (one, one) for one in values]
        return NoteRange(min(low for low, _ in ends), max(high for _, high in ends))
    parts = (part for value in values for part in (value if isinstance(value, tuple) else (value,)))
    return tuple(dict.fromkeys(part for part in parts if part != ""))


def _frozen(value: Any) -> Any:
    """Converts a value to a hashable one. Notes contain no nested objects. If a damaged record contains one, it is
    converted to text."""
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return str(value) if isinstance(value, dict) else value
