"""Tags: what a user notes of all trials of a run or a lab, so that records of a year can be ordered and found by it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ironbench.errors import InputError, quoted
from ironbench.plan import resolve
from ironbench.words import clean

MOST = 16
LONGEST = 200
"""Characters of a value: a record is small, and so is a row of the index."""
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}")


def read(option: str, texts: Iterable[str]) -> dict[str, str]:
    """`KEY=VALUE` strings as a dict; a later one wins. InputError."""
    found = resolve.pairs(option, texts)
    validate(option, found)
    return found


def validate(subject: str, tags: Mapping[str, str]) -> None:
    """InputError: a key is no word, a value is empty, long or of several lines, or there are too many."""
    if len(tags) > MOST:
        raise InputError(subject, f"{len(tags)} tags are more than {MOST}", "keep those that records are found by")
    for key, value in tags.items():
        if not _KEY.fullmatch(key):
            cause = f"{quoted(key)} is no key: letters, digits, `_`, `.` and `-`, a letter first, 40 at most"
            raise InputError(subject, cause, "write for example commit=1f3c2a9")
        if not value.strip() or value != clean(value) or len(value) > LONGEST:
            cause = f"the value of {key} is empty, of several lines or longer than {LONGEST} characters"
            raise InputError(subject, cause, "write for example commit=1f3c2a9")
