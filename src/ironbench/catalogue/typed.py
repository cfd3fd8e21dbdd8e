"""Reads text files and TOML documents written by users. Errors name the file and the position in it."""

from __future__ import annotations

import io
import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

from ironbench import units
from ironbench.catalogue import text_files
from ironbench.errors import InputError

_LARGEST = 1 << 20
"""Maximum size in bytes of a file written by a person."""
_DEEPEST = 32
_DEEP_KEY = re.compile(rf"""(?<![\w.'"-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{4 * _DEEPEST},}}""")
"""Pattern of a key `a.b.c…` with so many parts that tomllib would take very long. The time grows with the square of the
number of parts."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters except tab and newline. Such characters could move the terminal's cursor or truncate a path."""


def text_of(path: Path, subject: str, hint: str, most_bytes: int = _LARGEST) -> str:
    """Reads a file that a user names, and removes the byte order mark. Raises InputError if the file is missing,
    unreadable, not a regular file, not UTF-8, or too large."""
    try:
        # The file is opened without blocking. Otherwise, opening a named pipe would wait for a writer (fifo(7)).
        raw = io.FileIO(path, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
        with io.BufferedReader(raw) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InputError(subject, "is not a regular file", hint)
            data = file.read(most_bytes + 1)
    except FileNotFoundError:
        raise InputError(subject, "no such file", hint) from None
    except (OSError, ValueError) as error:
        raise InputError(subject, f"cannot be read: {getattr(error, 'strerror', None) or error}", hint) from None
    if len(data) > most_bytes:
        raise InputError(subject, f"is larger than {units.memory(most_bytes)}", hint)
    text_files.refuse_unreadable(data[:4096], subject, "text", empty=True)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(subject, f"byte {error.start} is not UTF-8", "save it in UTF-8") from None


def document(text: str, file: str, hint: str) -> dict[str, Any]:
    """Parses TOML. Raises InputError if the text is invalid or contains a value that no field accepts."""
    if _DEEP_KEY.search(text):
        raise InputError(file, "has a key with too many parts", f"use at most {_DEEPEST}")
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(file, f"is not valid TOML: {str(error)[:1].lower()}{str(error)[1:]}", hint) from None
    except RecursionError:
        raise InputError(file, "has too many nested brackets", f"use at most {_DEEPEST} levels") from None
    except ValueError:  # int() raises ValueError for a number with more than 4300 digits
        raise InputError(file, "has a number with too many digits", "use numbers of at most 64 bits") from None
    _validate(parsed, file, "", 0)
    return parsed


def _validate(value: object, file: str, path: str, depth: int) -> None:
    """Refuses values that TOML allows but no field accepts: deep nesting, numbers of more than 64 bits, dates, control
    characters."""
    where = f"{file}, {path}" if path else file
    if depth > _DEEPEST:
        raise InputError(file, "has too many nested brackets", f"use at most {_DEEPEST} levels")
    if isinstance(value, dict):
        for key, inner in value.items():
            _validate(key, file, path or "a name", depth)
            _validate(inner, file, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _validate(inner, file, path, depth + 1)
    elif isinstance(value, str):
        if control := _CONTROL.search(value):
            raise InputError(where, f"contains the control character U+{ord(control[0]):04X}", "remove the character")
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise InputError(where, "is a number of more than 64 bits", "use a number of at most 64 bits")
    elif not isinstance(value, float):
        raise InputError(where, "is a date or a time, which no field accepts", "write it in quotes")
