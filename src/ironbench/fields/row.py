"""A row of the table of fields: everything about a field except its name, type and default."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import msgspec

from ironbench.ranges import Range


@dataclass(frozen=True, slots=True)
class Row:
    """Facts about a field. Help texts and checks use them."""

    help: str = ""
    range: Range | None = None
    """Permitted range of a number, size or time. For a list or table, each entry must be in the range."""
    usual: str = ""
    """What happens if the field is left out. Empty if the default value already shows this."""
    metavar: str = ""
    """Placeholder of the field's value in the help of the command line."""
    option: tuple[str, ...] = ()
    """Names of the field on the command line. If empty, the option is `--` and the field's name."""
    run: bool = True
    """Whether `ironbench run` has an option for the field."""
    texts: str = ""
    """Pattern of the texts that are valid in place of a number. Such a text requests a search or declares a curve."""
    instead: str = ""
    """Examples of texts that are valid in place of a number. Hints contain them."""
    variable: str = ""
    """Environment variable that sets the option."""
    names: str = ""
    """What `ironbench list` must list to show the possible values of the field, such as `engines`. Used for shell
    completion."""


_ROW = "row"


def row(
    help: str,
    range: Range | None = None,
    *,
    usual: str = "",
    metavar: str = "",
    option: tuple[str, ...] = (),
    run: bool = True,
    texts: str = "",
    instead: str = "",
    variable: str = "",
    names: str = "",
) -> msgspec.Meta:
    """Returns the annotation of a field. Example:
    `threads: Annotated[int, row("Driving threads.", Range(1, 1024))] = 1`."""
    bounds = {"exclusiveMinimum" if range.above else "minimum": range.low, "maximum": range.high} if range else None
    return msgspec.Meta(
        description=f"{help} Default: {usual}." if usual else help,
        extra_json_schema=bounds,
        extra={
            _ROW: Row(
                help,
                range,
                usual,
                metavar,
                option,
                run=run,
                texts=texts,
                instead=instead,
                variable=variable,
                names=names,
            )
        },
    )


@dataclass(frozen=True, slots=True)
class Field:
    """A field, with its row in the table of fields."""

    name: str
    """Name of the field in lab files, and on the command line after `--`."""
    attribute: str
    """Name of the struct's attribute."""
    type: Any
    """Type of the attribute with its annotations, as msgspec reads it."""
    default: Any
    """Default value, or `msgspec.NODEFAULT` if the field is required."""
    row: Row

    @property
    def usual(self) -> str:
        """What happens if the field is left out, in words. Empty if leaving the field out switches it off or leaves it
        without a value."""
        value = self.default
        shown = isinstance(value, str | int | float) and not isinstance(value, bool)
        return self.row.usual or (str(value) if shown else "")

    @property
    def kinds(self) -> tuple[Any, ...]:
        """Types of the field's value without annotations, such as `(int, str)` for `int | Annotated[str, …]`."""
        return tuple(kinds(self.type))

    @property
    def section(self) -> type[msgspec.Struct] | None:
        """The struct that defines the field's own fields, if the field is a section."""
        (first, *others) = self.kinds
        return first if not others and _is_struct(first) else None

    @property
    def entries(self) -> type[msgspec.Struct] | None:
        """The struct of each entry, if the field is a list of sections, or a table of sections whose names the user
        chooses."""
        return next((one for one in self.entry_kinds if _is_struct(one)), None)

    @property
    def entry_kinds(self) -> tuple[Any, ...]:
        """Types of the entries of a list or table."""
        many = (kind for kind in self.kinds if typing.get_origin(kind) in (list, dict))
        return tuple(one for kind in many for one in kinds(typing.get_args(kind)[-1]))

    @property
    def words(self) -> tuple[Any, ...]:
        """The words that are permitted as values. Empty if other texts are also permitted."""
        return tuple(
            word for kind in self.kinds if typing.get_origin(kind) is typing.Literal for word in typing.get_args(kind)
        )

    @property
    def origins(self) -> tuple[Any, ...]:
        """Types of the field's value without their parameters, such as `(str, list)` for `str | list[str]`."""
        return tuple(typing.get_origin(kind) or kind for kind in self.kinds)

    @property
    def many(self) -> bool:
        """Whether the field's value is a list or a table. The option on the command line may then be repeated."""
        return self.origins[0] in (list, dict)

    @property
    def switch(self) -> bool:
        """Whether the field is a switch with the values true and false."""
        return self.kinds == (bool,)

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the field on the command line."""
        return self.row.option or ("--" + self.name.replace("_", "-"),)

    @property
    def placeholder(self) -> str:
        """Placeholder of the field's value in the help."""
        if self.row.metavar or self.switch:
            return self.row.metavar
        if self.row.range:
            return {"s": "TIME", "bytes": "SIZE"}.get(self.row.range.unit, "N")
        return "KEY=VALUE" if dict in self.origins else "NAME"


@cache
def table(struct: type[msgspec.Struct]) -> Mapping[str, Field]:
    """Returns the fields of a section by their names in a file."""
    return {one.encode_name: _field(one) for one in msgspec.structs.fields(struct)}


def same_as(section: type[msgspec.Struct], name: str, more: str = "") -> msgspec.Meta:
    """Returns an annotation that copies the row of a field in another section. `more` is appended to the help."""
    known = table(section)[name].row
    return msgspec.Meta(description=known.help + more, extra={_ROW: replace(known, help=known.help + more)})


def optional(file: type[msgspec.Struct]) -> Iterator[Field]:
    """Yields the fields of a document and of its sections that have an option on the command line."""
    for one in table(file).values():
        if one.section:
            yield from optional(one.section)
        elif one.row.run and one.row.help:
            yield one


def _field(info: msgspec.structs.FieldInfo) -> Field:
    default = info.default
    if info.default_factory is not msgspec.NODEFAULT:
        default = info.default_factory()
    return Field(info.encode_name, info.name, info.type, default, _row(info.type))


def _row(hint: Any) -> Row:
    """Finds the row among the annotations of a type. An annotation that has only a description becomes a row with this
    text as help."""
    for meta in getattr(hint, "__metadata__", ()):
        if isinstance(meta, msgspec.Meta):
            return (meta.extra or {}).get(_ROW) or Row(meta.description or "")
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return next((found for one in typing.get_args(hint) if (found := _row(one)) != Row()), Row())
    return _row(typing.get_args(hint)[1]) if typing.get_origin(hint) is dict else Row()


def kinds(hint: Any) -> Iterator[Any]:
    """Returns the types that a value may have, without annotations and without None."""
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        yield from kinds(hint.__origin__)
    elif isinstance(hint, types.UnionType) or origin is typing.Union:
        for one in typing.get_args(hint):
            yield from kinds(one)
    elif hint is not types.NoneType:
        yield hint


def _is_struct(kind: Any) -> typing.TypeGuard[type[msgspec.Struct]]:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def stands_for_a_number(field: Field, text: str) -> bool:
    """Returns whether the field accepts this text in place of a number. Such a text requests a search or declares a
    curve."""
    return bool(field.row.texts) and re.match(field.row.texts, text) is not None
