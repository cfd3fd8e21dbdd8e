"""The registry of wording functions. For each code of a note, the registry contains a function that puts such notes
into words."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from ironbench.model.note import TEXT, Note, NoteRange
from ironbench.report.wording.values import names

Worded = TypeVar("Worded", bound=Callable[..., str])


class UnwordedNoteWarning(UserWarning):
    """The values of a note do not fit its wording function. Users see the note's code and values instead of a sentence,
    and no warning. In tests, the warning is an error."""


warnings.simplefilter("ignore", UnwordedNoteWarning, append=True)

WORDING: dict[str, Callable[..., str]] = {}
"""Maps the code of a note to its wording function. The function gets the note's values as arguments and returns a
sentence without a period. A note about several trials may contain a range instead of a number, and a tuple of strings
instead of a string."""


def wording(*codes: str) -> Callable[[Worded], Worded]:
    """Registers a function for the notes of these codes."""

    def register(function: Worded) -> Worded:
        for code in codes:
            assert code not in WORDING, code
            WORDING[code] = function
        return function

    return register


def text(note: Note) -> str:
    """Returns a note as a sentence without a period. If this version of ironbench does not know the code, or if the
    values do not fit the wording function, returns the code and the values instead."""
    if note.values.keys() == {TEXT}:
        return names(note.values[TEXT])
    function = WORDING.get(note.code)
    if function is not None:
        try:
            return function(**note.values)
        except (TypeError, ValueError, LookupError, ArithmeticError) as error:
            # Another version of ironbench may have written other values, or a user may have edited the record. Users
            # must still see the rest of the report. For values of this version, the error is a bug, so tests turn the
            # warning into an error.
            warnings.warn(f"note {note.code} cannot be put into words: {error!r}", UnwordedNoteWarning, stacklevel=2)
    return ": ".join(filter(None, (note.code, ", ".join(f"{name} {_plain(one)}" for name, one in note.values.items()))))


def _plain(value: Any) -> str:
    if isinstance(value, NoteRange):
        return f"{value.low:g} to {value.high:g}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_plain, value))})"
    return f"{value:g}" if isinstance(value, float) else str(value)
