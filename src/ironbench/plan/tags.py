"""Reads tags. These are the user's key-value pairs for all trials of a run or a lab, by which records can be sorted and
found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ironbench.errors import InputError, quoted
from ironbench.plan import resolve
from ironbench.words import clean

MOST = 16
LONGEST = 200
"""Maximum number of characters of a value, because records and rows of the index must be small."""
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}")


def read(option: str, texts: Iterable[str]) -> dict[str, str]:
    """Converts `KEY=VALUE` strings to a dict. If a key occurs several times, the last value is used. Raises
    InputError."""
    found = resolve.pairs(option, texts)
    validate(option, found)
    return found


def validate(subject: str, tags: Mapping[str, str]) -> None:
    """Raises InputError for an invalid key, for too many tags, or for a value that is empty, too long or has several
    lines."""
    if len(tags) > MOST:
        raise InputError(
            subject, f"has {len(tags)} tags; the maximum is {MOST}", "remove the tags that you do not use in searches"
        )
    for key, value in tags.items():
        if not _KEY.fullmatch(key):
            form = "a key is a letter and up to 39 more letters, digits, `_`, `.` or `-`"
            cause = f"{quoted(key)} is not a valid key; {form}"
            raise InputError(subject, cause, "write for example commit=1f3c2a9")
        if not value.strip() or value != clean(value) or len(value) > LONGEST:
            cause = f"the value of {key} is empty, has several lines, or is longer than {LONGEST} characters"
            raise InputError(subject, cause, "write for example commit=1f3c2a9")
