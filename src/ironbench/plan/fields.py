"""Fields of a lab file by path: what there is, what a short name means, how a level's values get in."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache, partial
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from ironbench.catalogue import typed
from ironbench.errors import InputError, collected, nearest, written
from ironbench.plan.sections import SEARCHES, DeviceSection, Sections

Path = tuple[str, ...]
"""`("system", "set", "work_mem")`."""
_S = TypeVar("_S", bound=msgspec.Struct)

OPEN = (("system", "set"), ("workload", "with"), ("workload", "define"))
"""Tables whose keys are the user's own: settings, options, variables."""


@cache
def _types(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Name in the file → type, without its annotations."""
    hints = get_type_hints(struct)
    return {
        name: hints[attribute]
        for attribute, name in zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True)
    }


SECTIONS: dict[str, tuple[str, ...]] = {
    name: tuple(_types(kind)) for name, kind in _types(Sections).items() if isinstance(kind, type)
}
"""Section → its fields; [devices] has names of the user's own."""
DEVICES = "devices"
SHORT: dict[str, Path] = {name: (section, name) for section, names in SECTIONS.items() for name in names}
"""Last word → path; no two fields of different sections share one."""


def text(path: Path) -> str:
    return ".".join(path)


def validate(document: object, struct: type[msgspec.Struct], where: str, path: Path = ()) -> None:
    """InputError for a name that the section does not have, or a word that is none of a field's, with the nearest."""
    if not isinstance(document, Mapping):
        return
    types = _types(struct)

    def field(name: str, value: object) -> None:
        at = f"{where}, {text((*path, name))}" if where else written(text((*path, name)))
        if name not in types:
            raise InputError(at, "there is no such field", _nearest_field(name, list(types)))
        kind = types[name]
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            validate(value, kind, where, (*path, name))
        elif (words := _words(kind, value)) and value not in words:
            raise InputError(at, f"{value!r} is unknown", nearest(str(value), [word for word in words if word]))

    collected(partial(field, name, value) for name, value in document.items())


def _words(kind: Any, value: object) -> tuple[Any, ...]:
    """Those that the field takes; empty where it takes more than words, or where something else was written."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    choices = get_args(kind) if get_origin(kind) in (Union, UnionType) else ()
    if not isinstance(value, str) or str in choices:
        return ()
    return next((get_args(one) for one in choices if get_origin(one) is Literal), ())


def _nearest_field(name: str, siblings: list[str]) -> str:
    """A sibling that is written alike; else the place of a field that is called that."""
    if name in SHORT and name not in siblings:
        section, field = SHORT[name]
        return f"{field} belongs to [{section}]"
    return nearest(name, siblings)


def validate_kinds(document: object, struct: type[msgspec.Struct], where: str) -> None:
    """Every field by itself, those of tables too. InputError for each whose value is of a wrong kind."""
    if not isinstance(document, Mapping):
        converted(document, struct, where)
        return
    types = _types(struct)
    checks: list[Callable[[], object]] = []
    for name, value in document.items():
        kind = types.get(name)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and isinstance(value, Mapping):
            inner = types[name]
            checks += [
                partial(converted, {name: {key: one}}, struct, where)
                for key, one in value.items()
                if key in _types(inner)
            ]
        elif kind is not None:
            checks.append(partial(converted, {name: value}, struct, where))
    collected(checks)


def sound(document: Mapping[str, Any], struct: type[msgspec.Struct]) -> dict[str, Any]:
    """The document without the fields that `validate` or `validate_kinds` refuses."""
    kept: dict[str, Any] = {}
    for name, value in document.items():
        kind = _types(struct).get(name)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and isinstance(value, Mapping):
            kept[name] = sound(value, kind)
        elif is_sound({name: value}, struct):
            kept[name] = value
    return kept


def is_sound(document: Mapping[str, Any], struct: type[msgspec.Struct]) -> bool:
    """Whether `validate` and `validate_kinds` refuse nothing of it."""
    try:
        validate(document, struct, "")
        converted(document, struct, "")
    except InputError:
        return False
    return True


def names(struct: type[msgspec.Struct]) -> Collection[str]:
    """Of its fields, as they stand in the file."""
    return _types(struct).keys()


def converted(document: object, struct: type[_S], where: str) -> _S:
    """The document as a struct. InputError with the path of the field whose value is of a wrong kind."""
    try:
        return typed.converted(document, struct, where, "`docs/reference/lab-file.md` lists all fields")
    except InputError as error:
        if repr(SEARCHES) not in error.cause:
            raise
        cause = (
            'expected a whole number, "auto" or for example "auto:1-64" to search, or a curve such as "ramp:1-64/60s"'
        )
        raise InputError(error.subject, cause, error.hint) from None


def found(name: str, base: Mapping[str, Any], where: str, table: bool = False) -> Path:
    """The path that `load.clients`, `clients` or, where the file sets it, `work_mem` stands for. InputError.

    `table`: its value is one, so that `data` means the section and not `layout.data`.
    """
    section, dot, rest = name.partition(".")
    if section == DEVICES:
        return (DEVICES, *_of_a_device(rest, base.get(DEVICES, {}), where)) if dot else (DEVICES,)
    if dot and section in SECTIONS:
        field, dot, key = rest.partition(".")
        if field not in SECTIONS[section]:
            raise InputError(where, f"there is no field {name}", _nearest_field(field, list(SECTIONS[section])))
        if dot and (section, field) not in OPEN:
            raise InputError(where, f"{section}.{field} is no table", f"write {section}.{field} = …")
        return (section, field, key) if dot else (section, field)
    if name in SECTIONS and (table or name not in SHORT):
        return (name,)
    if name in SHORT:
        return SHORT[name]
    own = [(*table, name) for table in OPEN if name in base.get(table[0], {}).get(table[1], {})]
    if len(own) == 1:
        return own[0]
    if own:
        raise InputError(where, f"{name} means {' or '.join(map(text, own))}", "write the whole path")
    raise InputError(where, f"there is no field {name}", _hint(name))


def _of_a_device(name: str, devices: Mapping[str, Any], where: str) -> Path:
    """`array` or `array.fs`, of a device that the file declares."""
    device, dot, field = name.partition(".")
    if device not in devices:
        raise InputError(where, f"there is no device {device} in [devices]", nearest(device, list(devices)))
    if not isinstance(devices[device], Mapping):
        raise InputError(where, f"device {device} is one expression", f"write [devices.{device}] model = …")
    if dot and field not in (known := _types(DeviceSection)):
        raise InputError(where, f"there is no field {DEVICES}.{name}", nearest(field, list(known)))
    return (device, field) if dot else (device,)


def _hint(name: str) -> str:
    paths = [text(path) for path in SHORT.values()]
    hint = nearest(name, [*SHORT, *paths])
    if hint.startswith("did you mean"):
        return hint
    return f"an engine's setting is written system.set.{name}, a workload's option workload.with.{name}; " + nearest(
        name, paths
    )


def overrides(level: Mapping[str, Any], base: Mapping[str, Any], where: str) -> dict[Path, Any]:
    """The fields that a level sets, whether they are written with their path or as tables. InputError."""
    return dict(_flat(level, base, where))


def _flat(level: Mapping[str, Any], base: Mapping[str, Any], where: str) -> Iterator[tuple[Path, Any]]:
    for name, value in level.items():
        path = found(name, base, where, isinstance(value, Mapping))
        if isinstance(value, Mapping):
            if len(path) == 1 or (path[0] == DEVICES and len(path) == 2):
                yield from _flat({f"{text(path)}.{key}": inner for key, inner in value.items()}, base, where)
            elif path in OPEN:
                yield from _keys(path, value)
            else:
                raise InputError(where, f"{text(path)} takes a value, not a table", f"write {name} = …")
        elif len(path) == 1 or path in OPEN or (path[0] == DEVICES and len(path) == 2):
            raise InputError(where, f"{text(path)} takes a table", f"write {name} = {{ … }}")
        else:
            yield path, value


def with_dotted_keys(document: Mapping[str, Any]) -> dict[str, Any]:
    """`set.auto_explain.log_timing = 1` without quotes means the setting `auto_explain.log_timing`."""
    joined = copy.deepcopy(dict(document))
    for section, field in OPEN:
        table = joined.get(section)
        if isinstance(table, dict) and isinstance(table.get(field), dict):
            table[field] = {path[-1]: value for path, value in _keys((section, field), table[field])}
    return joined


def _keys(path: Path, values: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """Keys of an open table; `auto_explain.log_nested_statements` is one key with a dot in it."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _keys(path, {f"{key}.{inner}": one for inner, one in value.items()})
        else:
            yield (*path, key), value


def applied(base: Mapping[str, Any], changes: Mapping[Path, Any]) -> dict[str, Any]:
    """The document with the changes in it; `base` stays as it is."""
    document = copy.deepcopy(dict(base))
    for path, value in changes.items():
        table = document
        for step in path[:-1]:
            table = table.setdefault(step, {})
        table[path[-1]] = value
    return document
