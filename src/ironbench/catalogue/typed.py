"""Files that users write, read into typed tables: what is wrong in them is told in the words of the file."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ironbench import units
from ironbench.errors import InputError, nearest

_S = TypeVar("_S")
_UNKNOWN = re.compile(r"Object contains unknown field `(.+)`")
_MISSING = re.compile(r"Object missing required field `(.+)`")
_KINDS = {
    "str": "text in quotes", "int": "a whole number", "float": "a number", "bool": "true or false",
    "array": "a list [ … ]", "object": "a table", "null": "nothing",
}  # fmt: skip


_LARGEST = 1 << 20
"""Bytes of a file that a person writes."""
_DEEPEST = 32
"""Tables and lists within each other."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Characters that move a cursor or end a path, but for the tab and the end of a line."""


def text_of(path: Path, subject: str, hint: str) -> str:
    """The text of a file that a user names. InputError: not there, not readable, no UTF-8, or too large."""
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        raise InputError(subject, "no such file", hint) from None
    except (OSError, ValueError) as error:
        raise InputError(subject, f"cannot be read: {getattr(error, 'strerror', None) or error}", hint) from None
    if len(data) > _LARGEST:
        raise InputError(subject, f"is larger than {units.memory(_LARGEST)}", hint)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(subject, f"byte {error.start} is not UTF-8", "save it in UTF-8") from None


def document(text: str, file: str, hint: str) -> dict[str, Any]:
    """A TOML text. InputError with the place where it is none, or where it has a value that no field takes."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(file, f"is no TOML: {str(error)[:1].lower()}{str(error)[1:]}", hint) from None
    except RecursionError:
        raise InputError(file, "has too many brackets within each other", f"{_DEEPEST} are possible") from None
    except ValueError:  # of int(): more than 4300 digits
        raise InputError(file, "has a number of too many digits", "numbers have at most 64 bits") from None
    _validate(found, file, "", 0)
    return found


def _validate(value: object, file: str, path: str, depth: int) -> None:
    """What TOML allows and no field can take: depth, numbers of more than 64 bits, dates, control characters."""
    where = f"{file}, {path}" if path else file
    if depth > _DEEPEST:
        raise InputError(file, "has too many brackets within each other", f"{_DEEPEST} are possible")
    if isinstance(value, dict):
        for key, inner in value.items():
            _validate(key, file, path or "a name", depth)
            _validate(inner, file, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _validate(inner, file, path, depth + 1)
    elif isinstance(value, str):
        if found := _CONTROL.search(value):
            raise InputError(where, f"has the control character U+{ord(found[0]):04X}", "write it without")
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise InputError(where, "is a number of more than 64 bits", "numbers have at most 64 bits")
    elif not isinstance(value, float):
        raise InputError(where, "is a date or a time", "no field takes one; write it in quotes")


def converted(found: object, struct: type[_S], where: str, hint: str) -> _S:
    """A table as a struct. InputError with the field that is of a wrong kind, missing or unknown."""
    try:
        return msgspec.convert(found, struct)
    except msgspec.ValidationError as error:
        cause, _, place = str(error).partition(" - at `$")
        at = place.rstrip("`").lstrip(".").removesuffix("[...]")
        if match := _UNKNOWN.fullmatch(cause):
            cause, hint = (
                f"there is no field {match[1]}",
                nearest(match[1], list(getattr(struct, "__struct_encode_fields__", ()))),
            )
        elif match := _MISSING.fullmatch(cause):
            cause, hint = f"has no {match[1]}", f"add {match[1]} = …; {hint}"
        raise InputError(f"{where}, {at}" if at else where, _plainly(cause), hint) from None


def _plainly(cause: str) -> str:
    """`Expected `int`, got `str`` in the words of the file."""

    def kind(match: re.Match[str]) -> str:
        names = [name for name in map(str.strip, match[1].split("|")) if name != "null" or match[1] == "null"]
        names = [name for name in names if name != "int" or "float" not in names]
        return " or ".join(_KINDS.get(name, name) for name in names)

    return re.sub(r"`([^`]*)`", kind, cause[:1].lower() + cause[1:])
