"""Files that users write, read into typed tables: what is wrong in them is told in the words of the file."""

from __future__ import annotations

import re
import tomllib
from typing import Any, TypeVar

import msgspec

from ironbench.errors import InputError, nearest

_S = TypeVar("_S", bound=msgspec.Struct)
_UNKNOWN = re.compile(r"Object contains unknown field `(.+)`")
_MISSING = re.compile(r"Object missing required field `(.+)`")
_KINDS = {
    "str": "text in quotes", "int": "a whole number", "float": "a number", "bool": "true or false",
    "array": "a list [ … ]", "object": "a table", "null": "nothing",
}  # fmt: skip


def document(text: str, file: str, hint: str) -> dict[str, Any]:
    """InputError with the place where it is no TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(file, f"is no TOML: {str(error)[:1].lower()}{str(error)[1:]}", hint) from None


def converted(found: object, struct: type[_S], where: str, hint: str) -> _S:
    """A table as a struct. InputError with the field that is of a wrong kind, missing or unknown."""
    try:
        return msgspec.convert(found, struct)
    except msgspec.ValidationError as error:
        cause, _, place = str(error).partition(" - at `$")
        at = place.rstrip("`").lstrip(".").removesuffix("[...]")
        if match := _UNKNOWN.fullmatch(cause):
            cause, hint = f"there is no field {match[1]}", nearest(match[1], list(struct.__struct_encode_fields__))
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
