"""Reads [vary], which declares factors and their values. A value sets one or more fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from ironbench import units
from ironbench.errors import InputError, collected, quoted
from ironbench.fields import check
from ironbench.fields.check import Path
from ironbench.fields.sections import SECTIONS, Sections
from ironbench.plan import paths


@dataclass(frozen=True, slots=True)
class VariedFactor:
    """A factor, with the fields that its values set."""

    name: str
    levels: Mapping[str, Mapping[Path, Any]]
    """For each value, by its name: the new values of the fields that it sets. The baseline's value is first."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the values in the order of declaration."""
        return tuple(self.levels)

    @property
    def fields(self) -> tuple[tuple[str, ...], ...]:
        """For each value: the fields that the value sets, as written in lab files."""
        return tuple(tuple(map(check.text, changes)) for changes in self.levels.values())

    @property
    def paths(self) -> frozenset[Path]:
        """The fields that any of the values sets."""
        return frozenset(path for changes in self.levels.values() for path in changes)


def factors(table: Mapping[str, Any], base: Mapping[str, Any], file: str) -> tuple[VariedFactor, ...]:
    """Returns every factor of [vary] in the order of the file. Raises InputError with the path of each mistake."""
    written = list(_unfolded(table))
    shown = _names([name for name, _ in written])
    factors = tuple(collected(partial(_factor, shown[name], name, value, base, file) for name, value in written))
    _no_field_twice(factors, file)
    return factors


def _factor(shown: str, name: str, value: Any, base: Mapping[str, Any], file: str) -> VariedFactor:
    where = f"{file}, vary.{_quoted(name)}"
    levels = list(_levels(name, value, base, where))
    _validate(levels, base, where)
    return VariedFactor(shown, dict(levels))


def _unfolded(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields the factors by name. TOML reads an unquoted `load.clients = […]` as a nested table, but here it means the
    same as the quoted key `"load.clients"`."""
    for name, value in table.items():
        if name in SECTIONS and isinstance(value, Mapping):
            of_fields = {key: inner for key, inner in value.items() if key in SECTIONS[name]}
            levels = {key: inner for key, inner in value.items() if key not in of_fields}
            for key, inner in of_fields.items():
                if (name, key) in paths.OPEN and isinstance(inner, Mapping):
                    for setting, one in inner.items():
                        yield from _dotted(f"{name}.{key}.{setting}", one)
                else:
                    yield f"{name}.{key}", inner
            if levels:
                yield name, levels
        else:
            yield name, value


def _dotted(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the factors for one setting. A table of lists belongs to several settings with a dot in their names,
    because the values of a single setting are never a table of lists."""
    if isinstance(value, Mapping) and value and all(isinstance(inner, list) for inner in value.values()):
        yield from ((f"{name}.{key}", inner) for key, inner in value.items())
    else:
        yield name, value


def _names(written: Sequence[str]) -> dict[str, str]:
    """Returns the name of the factor for each path in [vary]. This is the last word of the path, or the whole path if
    two factors would otherwise have the same name."""
    short = {name: name.rpartition(".")[2] if name.partition(".")[0] in SECTIONS else name for name in written}
    taken = list(short.values())
    return {name: word if taken.count(word) == 1 else name for name, word in short.items()}


def _levels(name: str, value: Any, base: Mapping[str, Any], where: str) -> Iterator[tuple[str, Mapping[Path, Any]]]:
    """Yields the name of each value, and the new values of the fields that it sets."""
    if isinstance(value, Mapping):
        for level, changes in value.items():
            if isinstance(changes, Mapping):
                yield level, paths.overrides(changes, base, f"{where}.{_quoted(level)}")
            else:
                yield level, {_field(name, base, where): changes}
    elif isinstance(value, list | str):
        path = _field(name, base, where)
        for one in _ends(value, where) if isinstance(value, str) else value:
            yield value_name(one), {path: one}
    else:
        raise InputError(where, "has no values", _WRITE.format(name))


_WRITE = 'write a list, for example "{}" = [1, 2, 4], a range "1..4", or a TOML table of named values'
_RANGE = re.compile(r"\s*(-?[0-9]+(?:\.[0-9]+)?)\s*([^\s0-9.]*)\s*\.\.\s*(-?[0-9]+(?:\.[0-9]+)?)\s*([^\s0-9.]*)\s*")


def _ends(text: str, where: str) -> tuple[int | float | str, int | float | str]:
    """Returns both ends of a range such as `128MB..2GB`. The first end is the baseline's value. Raises InputError if
    the text is not a range, or if the ends are equal or have different units."""
    match = _RANGE.fullmatch(text)
    if match is None:
        raise InputError(where, f"{quoted(text)} is not a range", 'write for example "128MB..2GB", or a list of values')
    ends = (match[1], match[2]), (match[3], match[4])
    first, last = (_readings(number, unit) for number, unit in ends)
    common = [kind for kind in first if kind in last]
    if not common:
        unlike = " and ".join(number + unit for number, unit in ends)
        raise InputError(
            where, f"{unlike} have different kinds of units", 'use the same kind of unit, e.g. "128MB..2GB"'
        )
    if any(first[kind] == last[kind] for kind in common):
        raise InputError(where, f"both ends of {quoted(text)} are equal", "use two different values")
    low, high = (number + unit if unit else _number(number) for number, unit in ends)
    return low, high


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def _readings(number: str, unit: str) -> dict[str, float]:
    """Interprets one end of a range. For each kind of unit that the end may have, returns the number in base units.

    The unit `m` may mean minutes or megabytes. An unknown unit is assumed to be a unit of the engine.
    """
    if not float(number):
        return {"": 0.0, "size": 0.0, "time": 0.0, unit: 0.0}
    if not unit:
        return {"": float(number)}
    readings = {}
    for kind, read in (("size", units.size), ("time", units.seconds)):
        with suppress(InputError):
            readings[kind] = float(read("", number + unit))
    with suppress(InputError):  # engines use powers of 1024
        readings["size"] = float(units.size_of_1024("", number + unit, 1))
    return readings or {unit: float(number)}


def _field(name: str, base: Mapping[str, Any], where: str) -> Path:
    path = paths.field_path(name, base, where)
    if len(path) == 1 or path in paths.OPEN:
        raise InputError(
            where,
            f"{name} contains several fields, so it cannot have a single value",
            "vary one of these fields, or write a TOML table of named values",
        )
    return path


def value_name(value: Any) -> str:
    """Returns the name of a value, such as `8`, `on` or `log+data`. The name of an empty value is `none`."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return "+".join(map(str, value)) or "none"
    return str(value) or "none"


def _validate(levels: Sequence[tuple[str, Mapping[Path, Any]]], base: Mapping[str, Any], where: str) -> None:
    if len(levels) < 2:
        few = "has no values" if not levels else f"has only one value, {levels[0][0]}"
        raise InputError(where, few, "add a second value, or move the field to its own section if it does not vary")
    names: set[str] = set()
    known: dict[bytes, str] = {}
    for number, (name, changes) in enumerate(levels):
        if not name.strip():
            raise InputError(where, f"value {number + 1} has no name", "add a name")
        if name in names:
            raise InputError(where, f"value {name} is listed twice", "list each value once")
        document = paths.applied(base, changes)
        content = msgspec.json.encode(document, order="deterministic")
        if content in known:
            raise InputError(
                where,
                f"values {known[content]} and {name} make the same configuration",
                "change or remove one of the two",
            )
        check.converted(document, Sections, f"{where}, value {name}")
        names.add(name)
        known[content] = name


def _no_field_twice(known: Sequence[VariedFactor], file: str) -> None:
    setter: dict[Path, str] = {}
    for factor in known:
        changed = dict.fromkeys(path for changes in factor.levels.values() for path in changes)
        for path in (
            path for path in changed if path[0] != "commands"
        ):  # several factors may have commands, and all of them are run
            if path in setter:
                raise InputError(
                    f"{file}, vary",
                    f"factors {setter[path]} and {factor.name} both set {check.text(path)}",
                    "combine the two into one factor with named values, or remove the field from one factor",
                )
            setter[path] = factor.name


def _quoted(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() else f'"{name}"'
