"""Resolves short names to paths of lab-file fields, and applies a value's changes to a document."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from ironbench.errors import InputError, nearest, similar
from ironbench.fields.check import Path, nearest_field, text
from ironbench.fields.row import table
from ironbench.fields.sections import SECTIONS, SHORT, DeviceSection

OPEN = (("system", "set"), ("workload", "with"), ("workload", "define"))
"""Tables whose keys the user chooses: settings, options, variables."""
DEVICES = "devices"


def field_path(name: str, base: Mapping[str, Any], where: str, table: bool = False) -> Path:
    """Returns the path of a field. `name`: the path or short name of the field, such as `load.clients` or `clients`, or
    the name of a setting in the file, such as `work_mem`. Raises InputError.

    `table`: whether the value of the field is a table. The name `data` then means the section [data]; otherwise, it
    means the field `layout.data`.
    """
    section, dot, rest = name.partition(".")
    if section == DEVICES:
        return (DEVICES, *_of_a_device(rest, base.get(DEVICES, {}), where)) if dot else (DEVICES,)
    if dot and section in SECTIONS:
        field, dot, key = rest.partition(".")
        if field not in SECTIONS[section]:
            raise InputError(where, f"unknown field {name}", nearest_field(field, SECTIONS[section]))
        if dot and (section, field) not in OPEN:
            raise InputError(
                where, f"{section}.{field} takes a single value, so it has no fields", f"write {section}.{field} = …"
            )
        return (section, field, key) if dot else (section, field)
    if name in SECTIONS and (table or name not in SHORT):
        return (name,)
    if name in SHORT:
        return SHORT[name]
    own = [(*table, name) for table in OPEN if name in base.get(table[0], {}).get(table[1], {})]
    if len(own) == 1:
        return own[0]
    if own:
        raise InputError(where, f"{name} can mean {' or '.join(map(text, own))}", "write the full path")
    raise InputError(where, f"unknown field {name}", _hint(name))


def _of_a_device(name: str, devices: Mapping[str, Any], where: str) -> Path:
    """Returns the path below [devices] for a name such as `array` or `array.fs`. Raises InputError if the file has no
    such device or field."""
    device, dot, field = name.partition(".")
    if device not in devices:
        raise InputError(where, f"[devices] has no device {device}", nearest(device, list(devices)))
    if not isinstance(devices[device], Mapping):
        raise InputError(
            where,
            f"device {device} is declared as an expression, so it has no fields that can vary",
            f"declare the device as a TOML table: [devices.{device}] with model = …",
        )
    if dot and field not in (known := table(DeviceSection)):
        raise InputError(where, f"unknown field {DEVICES}.{name}", nearest(field, list(known)))
    return (device, field) if dot else (device,)


def _hint(name: str) -> str:
    paths = [text(path) for path in SHORT.values()]
    if hint := similar(name, [*SHORT, *paths]):
        return hint
    return f"write system.set.{name} for an engine setting, or workload.with.{name} for a workload option; " + nearest(
        name, paths
    )


def overrides(level: Mapping[str, Any], base: Mapping[str, Any], where: str) -> dict[Path, Any]:
    """Returns the path and the new value of each field that a factor's value sets. In the lab file, these fields are
    written as paths or as tables. Raises InputError."""
    return dict(_flat(level, base, where))


def _flat(level: Mapping[str, Any], base: Mapping[str, Any], where: str) -> Iterator[tuple[Path, Any]]:
    for name, value in level.items():
        path = field_path(name, base, where, isinstance(value, Mapping))
        if isinstance(value, Mapping):
            if len(path) == 1 or (path[0] == DEVICES and len(path) == 2):
                yield from _flat({f"{text(path)}.{key}": inner for key, inner in value.items()}, base, where)
            elif path in OPEN:
                yield from _keys(path, value)
            else:
                raise InputError(where, f"{text(path)} takes a single value, not a TOML table", f"write {name} = …")
        elif len(path) == 1 or path in OPEN or (path[0] == DEVICES and len(path) == 2):
            raise InputError(where, f"{text(path)} takes a TOML table, not a single value", f"write {name} = {{ … }}")
        else:
            yield path, value


def with_dotted_keys(document: Mapping[str, Any]) -> dict[str, Any]:
    """Joins unquoted keys that contain dots: `set.auto_explain.log_timing = 1` means the setting
    `auto_explain.log_timing`."""
    joined = copy.deepcopy(dict(document))
    for section, field in OPEN:
        table = joined.get(section)
        if isinstance(table, dict) and isinstance(table.get(field), dict):
            table[field] = {path[-1]: value for path, value in _keys((section, field), table[field])}
    return joined


def _keys(path: Path, values: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """Yields the keys of a table in `OPEN` with their values. A name with a dot, such as
    `auto_explain.log_nested_statements`, is one key."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _keys(path, {f"{key}.{inner}": one for inner, one in value.items()})
        else:
            yield (*path, key), value


def applied(base: Mapping[str, Any], changes: Mapping[Path, Any]) -> dict[str, Any]:
    """Returns a copy of the document to which the changes are applied."""
    document = copy.deepcopy(dict(base))
    for path, value in changes.items():
        table = document
        for step in path[:-1]:
            table = table.setdefault(step, {})
        table[path[-1]] = value
    return document
