"""Files that users write, read into typed tables: errors use the words of the file."""

from __future__ import annotations

import io
import os
import re
import stat
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from ironbench import units
from ironbench.catalogue import text_files
from ironbench.errors import InputError, nearest, quoted
from ironbench.ranges import RANGES

_S = TypeVar("_S")
_UNKNOWN = re.compile(r"Object contains unknown field `(.+)`")
_MISSING = re.compile(r"Object missing required field `(.+)`")
_REFUSED_TEXTS = ("Invalid enum value", "Expected `str` matching", "Expected `str` of length")
_KINDS = {
    "str": "text in quotes", "int": "a whole number", "float": "a number", "bool": "true or false",
    "array": "a list [ … ]", "object": "a table", "null": "nothing",
}  # fmt: skip


_LARGEST = 1 << 20
"""Bytes of a file that a person writes."""
_DEEPEST = 32
_DEEP_KEY = re.compile(rf"""(?<![\w.'"-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{4 * _DEEPEST},}}""")
"""A key `a.b.c…`, for which the time of tomllib grows with the square of the number of parts."""
"""Tables and lists within each other."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Characters that move a cursor or end a path, but for the tab and the end of a line."""


def text_of(path: Path, subject: str, hint: str, most_bytes: int = _LARGEST) -> str:
    """The text of a file that a user names. InputError: not there, not readable, no file, no UTF-8, or too large. A
    byte order mark is no part of it."""
    try:
        # Not to wait for the other end of a named pipe (fifo(7)).
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
    """A TOML text. InputError with the place where it is none, or where it has a value that no field takes."""
    if _DEEP_KEY.search(text):
        raise InputError(file, "has a key of too many parts", f"{_DEEPEST} are possible")
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(file, f"is no TOML: {str(error)[:1].lower()}{str(error)[1:]}", hint) from None
    except RecursionError:
        raise InputError(file, "has too many brackets within each other", f"{_DEEPEST} are possible") from None
    except ValueError:  # of int(): more than 4300 digits
        raise InputError(file, "has a number of too many digits", "numbers have at most 64 bits") from None
    _validate(parsed, file, "", 0)
    return parsed


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
        if control := _CONTROL.search(value):
            raise InputError(where, f"has the control character U+{ord(control[0]):04X}", "write it without")
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise InputError(where, "is a number of more than 64 bits", "numbers have at most 64 bits")
    elif not isinstance(value, float):
        raise InputError(where, "is a date or a time", "no field takes one; write it in quotes")


def quantity(name: str) -> msgspec.Meta:
    """Of a field whose value must be in the range of that quantity: `Annotated[int, quantity("cores")]`."""
    return msgspec.Meta(extra={"range": RANGES[name]})


def converted(data: object, struct: type[_S], where: str, hint: str) -> _S:
    """A table as a struct. InputError names the field that is missing, unknown, of a wrong kind or out of range."""
    try:
        value = msgspec.convert(data, struct)
    except msgspec.ValidationError as error:
        raise _refusal(str(error), data, struct, where, hint) from None
    for name, written, info in _fields(struct, value):
        if limits := _declared(info).get("range"):
            parts = (
                written.values() if isinstance(written, dict) else written if isinstance(written, list) else [written]
            )
            for part in parts:
                limits.require(f"{where}, {name}", part)
    return value


def _refusal(message: str, data: object, struct: type[Any], where: str, hint: str) -> InputError:
    """What the converter found wrong, in the words of the file."""
    cause, _, place = message.partition(" - at `$")
    at = place.rstrip("`").lstrip(".").removesuffix("[...]")
    fields = {name: info for name, _, info in _fields(struct, None)}
    written = data.get(at) if isinstance(data, dict) else None
    if match := _UNKNOWN.fullmatch(cause):
        return InputError(
            f"{where}, {at}" if at else where, f"there is no field {match[1]}", nearest(match[1], list(fields))
        )
    if match := _MISSING.fullmatch(cause):
        return InputError(where, f"has no {match[1]}", f"add {match[1]} = {_expected(fields.get(match[1]))}; {hint}")
    if isinstance(written, str) and cause.startswith(_REFUSED_TEXTS):
        known = getattr(_plain(fields[at]), "values", ())
        way_out = nearest(written, known) if known else f"write {_expected(fields[at])}"
        return InputError(
            f"{where}, {at}", f"{quoted(written)} is unknown" if known else f"{quoted(written)} does not fit", way_out
        )
    return InputError(f"{where}, {at}" if at else where, _plainly(cause), hint)


def _fields(struct: Any, value: object) -> Iterator[tuple[str, Any, inspect.Type]]:
    """Each field of a struct: its name in the file, its value, its type. Nothing for what is no struct."""
    for field in _types(struct):
        written = getattr(value, field.name, None)
        if value is None or written is not None:
            yield field.encode_name, written, field.type


@cache
def _types(struct: Any) -> tuple[inspect.Field, ...]:
    known = inspect.type_info(struct)
    return known.fields if isinstance(known, inspect.StructType) else ()


def _plain(info: inspect.Type) -> inspect.Type:
    """The type of a field that may be left out, or that has a range or a description."""
    if isinstance(info, inspect.UnionType):
        return _plain(info.types[0])
    return _plain(info.type) if isinstance(info, inspect.Metadata) else info


def _declared(info: inspect.Type | None) -> dict[str, Any]:
    """What `quantity` or a description declared of a field, or of each value in it."""
    if isinstance(info, inspect.Metadata):
        return {**_declared(info.type), **(info.extra or {}), **(info.extra_json_schema or {})}
    if isinstance(info, inspect.UnionType):
        return {name: of for one in info.types for name, of in _declared(one).items()}
    return _declared(getattr(info, "value_type", None) or getattr(info, "item_type", None)) if info else {}


def _expected(info: inspect.Type | None) -> str:
    """What a field takes, in words."""
    if info is None:
        return "…"
    if values := getattr(_plain(info), "values", ()):
        return " or ".join(f'"{one}"' for one in values)
    return str(_declared(info).get("description", "…"))


def _plainly(cause: str) -> str:
    """`Expected `int`, got `str`` in the words of the file."""

    def kind(match: re.Match[str]) -> str:
        names = [name for name in map(str.strip, match[1].split("|")) if name != "null" or match[1] == "null"]
        names = [name for name in names if name != "int" or "float" not in names]
        return " or ".join(_KINDS.get(name, name) for name in names)

    return re.sub(r"`([^`]*)`", kind, cause[:1].lower() + cause[1:])
