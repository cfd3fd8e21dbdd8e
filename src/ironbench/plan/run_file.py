"""Converts the options of `ironbench run` to a lab-file document, and a document to options. Each option corresponds to
the field of the same name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ironbench.errors import InputError, each, together, written
from ironbench.fields import check
from ironbench.fields.row import Field, stands_for_a_number, table
from ironbench.fields.run import RunFile
from ironbench.plan import curves, resolve, sweep


def read(workload: str, files: Sequence[str] = (), **typed: Any) -> RunFile:
    """Reads options from keyword arguments, which are named like the attributes of the fields. The value of an option
    that was not given is None. Raises InputError with all mistakes."""
    document: dict[str, Any] = {"workload": {"name": workload, "files": list(files)}}
    refused: list[InputError] = []
    for section, field in _fields():
        value = typed.pop(field.attribute, None)
        if value is None:
            continue
        place = document.setdefault(section, {}) if section else document
        try:
            if field.name == "clients":
                document["sweep"], value = _counts(value)
            place[field.name] = _value(section, field, value)
        except InputError as error:
            refused += each(error)
    assert not typed, f"no field is called {', '.join(typed)}"
    refused += check.errors(check.mistakes(document, RunFile), "")
    if refused:
        raise together(refused)
    return msgspec.convert(document, RunFile)


def words(document: Mapping[str, Any]) -> list[str]:
    """Returns the command-line options that are equivalent to the document. Fields that have their default value are
    left out."""
    found: list[str] = []
    for section, field in _fields():
        value = document.get(section, {}).get(field.name) if section else document.get(field.name)
        if value in (None, "") or (value == field.default and isinstance(value, type(field.default))):
            continue
        option, _, off = field.options[0].partition("/")
        if field.switch:
            found.append(option if value else off)
        elif isinstance(value, Mapping):
            found += [word for key, one in sorted(value.items()) for word in (option, f"{key}={one}")]
        elif isinstance(value, list):
            found += [word for one in value for word in (option, one)] if field.many else [option, ",".join(value)]
        else:
            found += [option, str(value)]
    return found


def _fields() -> list[tuple[str, Field]]:
    """Returns every field of a run with its section. The section is empty for top-level fields."""
    found = []
    for name, one in table(RunFile).items():
        if one.section:
            found += [(name, field) for field in table(one.section).values() if field.row.run]
        elif one.row.run and one.row.help:
            found.append(("", one))
    return found


def _value(section: str, field: Field, typed: Any) -> Any:
    """Converts the value of an option to the form that it has in a lab file. Raises InputError if the value is not
    KEY=VALUE, or not a number."""
    subject = written(f"{section}.{field.name}")
    if not isinstance(typed, str):
        pairs = field.many and not isinstance(typed, Mapping) and dict in field.origins
        return resolve.pairs(subject, typed) if pairs else list(typed) if isinstance(typed, tuple) else typed
    if list in field.origins:
        return typed.split(",")
    known = field.row.range
    if known and not known.unit and not stands_for_a_number(field, typed):
        return known.number(subject, typed)
    return typed


def _counts(typed: Any) -> tuple[list[int], Any]:
    """Parses the option `clients`. For a list of numbers, returns the numbers, and the first number as the value of the
    field. For a search or a curve, returns no numbers and the unchanged value."""
    if not isinstance(typed, str) or curves.declares_curve(typed) or typed.startswith(sweep.AUTO):
        return [], typed
    counts = resolve.counts("load.clients", written("load.clients"), typed)
    return list(counts), counts[0]
