"""Checks a document against its section in one pass and returns every mistake with the path of its field."""

from __future__ import annotations

import typing
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from ironbench.errors import InputError, nearest, quoted, together, written
from ironbench.fields.row import Field, kinds, stands_for_a_number, table
from ironbench.fields.sections import SHORT, FieldSection

_S = TypeVar("_S")
Path = tuple[str, ...]
"""Path of a field as a tuple, such as `("system", "set", "work_mem")`."""
_KINDS = {
    bool: "true or false", int: "a whole number", float: "a number", str: "text in quotes", dict: "a TOML table",
    list: "a list [ … ]", type(None): "nothing",
}  # fmt: skip
"""Names of types in messages. A message with several types lists them in this order."""
LAB_FILE = "see `docs/reference/lab-file.md` for all fields"


class Mistake(NamedTuple):
    """A mistake in one field of a document."""

    path: Path
    cause: str
    hint: str


def text(path: Path) -> str:
    """Returns a path as written in files and messages."""
    return ".".join(path)


def mistakes(document: object, struct: type[msgspec.Struct], hint: str = LAB_FILE, path: Path = ()) -> list[Mistake]:
    """Returns the mistakes in a document: unknown and missing names, values of a wrong type, unknown words, and numbers
    out of range. `hint`: text that tells the user where permitted values are documented."""
    return list(_mistakes(document, struct, hint, path))


def _mistakes(document: object, struct: type[msgspec.Struct], hint: str, path: Path) -> Iterator[Mistake]:
    if not isinstance(document, Mapping):
        yield Mistake(path, f"expected a TOML table, got {_kind_of(document)}", hint)
        return
    known = table(struct)
    for name, field in known.items():
        if field.default is msgspec.NODEFAULT and name not in document:
            yield Mistake((*path, name), "is missing", f"add {name} = {_expected(field)}; {hint}")
    for name, value in document.items():
        at, known_field = (*path, name), known.get(name)
        if known_field is None:
            near = nearest_field(name, known) if issubclass(struct, FieldSection) else nearest(name, list(known))
            yield Mistake(at, "unknown field", near)
        elif known_field.section:
            yield from _mistakes(value, known_field.section, hint, at)
        else:
            yield from _of_value(known_field, value, hint, at)


def nearest_field(name: str, siblings: Collection[str]) -> str:
    """Returns a hint for an unknown name. The hint names the section that has a field of this name, or else a field of
    the same section with a similar name."""
    if name in SHORT and name not in siblings:
        section, field = SHORT[name]
        return f"`{field}` belongs to [{section}]"
    return nearest(name, list(siblings))


def _of_value(field: Field, value: object, hint: str, at: Path) -> Iterator[Mistake]:
    if field.words and isinstance(value, str) and value not in field.words and str not in field.kinds:
        yield Mistake(at, f"{quoted(value)} is unknown", nearest(value, [word for word in field.words if word]))
        return
    if field.entries and isinstance(value, Mapping):
        for name, entry in value.items():
            if not (isinstance(entry, str) and str in field.entry_kinds):
                yield from _mistakes(entry, field.entries, hint, (*at, name))
        return
    if field.entries and isinstance(value, list):
        for number, entry in enumerate(value):
            yield from _mistakes(entry, field.entries, hint, (*at[:-1], f"{at[-1]}[{number}]"))
        return
    known = field.row.range
    try:
        # Where text may replace a number, its type is not checked here. Other text is rejected below, with a message
        # about numbers.
        if not (known and field.row.texts and isinstance(value, str)):
            msgspec.convert(value, field.type)
        for one in _numbers(value) if known else ():
            if isinstance(one, str) and (stands_for_a_number(field, one) or (not one and known and known.unit)):
                continue
            if known and isinstance(one, str) and not known.unit:
                known.number("", one)  # raises if the text is not a number; otherwise, it is a number in quotes
                raise InputError("", f"expected {'a whole' if known.whole else 'a'} number, got text in quotes", hint)
            if known:
                known.read("", one)
    except msgspec.ValidationError:
        yield _wrong_kind(field, value, hint, at)
    except InputError as error:
        instead = f", {field.row.instead}" if field.row.instead and isinstance(value, str) else ""
        yield Mistake(at, error.cause, error.hint + instead)


def _numbers(value: object) -> Collection[Any]:
    """Returns the values to which a range applies: the entries of a list or table, or the value itself."""
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else [] if value is None or isinstance(value, bool) else [value]


def _wrong_kind(field: Field, value: object, hint: str, at: Path) -> Mistake:
    possible, wrong = _misfit(field.type, value)
    if isinstance(wrong, str) and str in possible:  # the value does not match its pattern, or has a wrong length
        return Mistake(at, f"{quoted(wrong)} is not a valid value", f"write {_expected(field)}")
    expected = " or ".join(name for kind, name in _KINDS.items() if kind in possible)
    return Mistake(at, f"expected {expected}, got {_kind_of(wrong)}", hint)


def _misfit(hint: Any, value: object) -> tuple[set[type], object]:
    """Returns the types that would be valid, and the innermost value that has a wrong type."""
    possible = set()
    for kind in kinds(hint):
        origin = typing.get_origin(kind) or kind
        if origin in (list, dict) and isinstance(value, origin):
            inner = typing.get_args(kind)[-1]
            for one in value.values() if isinstance(value, dict) else value:
                try:
                    msgspec.convert(one, inner)
                except msgspec.ValidationError:
                    return _misfit(inner, one)
        possible.add(str if origin is typing.Literal else origin if origin in _KINDS else dict)
    return possible - {int} if float in possible else possible, value


def _expected(field: Field) -> str:
    """Returns the permitted values of a field in words."""
    return " or ".join(f'"{word}"' for word in field.words) or field.row.help or "…"


def _kind_of(value: object) -> str:
    return next((name for kind, name in _KINDS.items() if isinstance(value, kind)), _KINDS[dict])


def errors(found: Iterable[Mistake], where: str) -> list[InputError]:
    """Returns the mistakes as errors, one per field. `where`: the file, or a position in it. If `where` is empty,
    messages name command-line options instead of lab-file fields."""
    known: dict[str, InputError] = {}
    for one in found:
        subject = ", ".join(filter(None, (where, text(one.path)))) if where else written(text(one.path))
        known.setdefault(subject, InputError(subject, one.cause, one.hint))
    return list(known.values())


def refused(found: Iterable[Mistake], where: str) -> None:
    """Raises InputError with all mistakes, if there are any. `where`: as in `errors`."""
    if every := errors(found, where):
        raise together(every)


def converted(document: object, struct: type[_S], where: str, hint: str = LAB_FILE) -> _S:
    """Converts the document to a struct. Raises InputError with all mistakes."""
    refused(mistakes(document, struct, hint), where)  # type: ignore[arg-type]
    return msgspec.convert(document, struct)


def without(document: Mapping[str, Any], paths: Iterable[Path]) -> dict[str, Any]:
    """Returns the document without the fields at these paths."""
    wrong = set(paths)

    def without_wrong_fields(value: object, at: Path) -> object:
        if not isinstance(value, Mapping):
            return value
        return {name: without_wrong_fields(one, (*at, name)) for name, one in value.items() if (*at, name) not in wrong}

    sound = without_wrong_fields(document, ())
    assert isinstance(sound, dict)
    return sound
