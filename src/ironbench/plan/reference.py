"""The lab file's reference: a page for people and a JSON schema for editors, both from the types that read the file."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from ironbench.plan.labfile import LabFile
from ironbench.plan.sections import DeviceSection

_SECTIONS = ("system", "devices", "layout", "limits", "data", "workload", "load", "commands", "measure", "expect")


def schema() -> str:
    """JSON Schema 2020-12, as text."""
    schema = msgspec.json.schema(LabFile)
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ironbench lab file",
        "required": ["question"],
        **schema,
    }
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def page() -> str:
    """Every section with its fields, in Markdown."""
    parts = [
        "# Lab file",
        "",
        "A lab file is TOML. What it is for and how to write one is told in [the guide](../guide/lab-files.md); this",
        "page lists every field. Editors that know JSON schemas check a file against",
        "[lab-file.schema.json](lab-file.schema.json) where its first line says `#:schema` and where that lies.",
        "",
        "In sizes MB is 10⁶ bytes and MiB 2²⁰, GB 10⁹ and GiB 2³⁰; a letter alone (`64K`) is a power of 1024.",
        "Durations take `us`, `ms`, `s`, `m`, `h`, `d`. A bare number is bytes or seconds. Settings of an engine, in",
        "`system.set`, keep that engine's units.",
        "Relative paths start at the lab file's directory.",
        "",
        *_section("At the top", LabFile, leave_out=_SECTIONS),
    ]
    for name in _SECTIONS:
        kind = _field(LabFile, name).type
        parts += _section("[devices.NAME]", DeviceSection) if name == "devices" else _section(f"[{name}]", kind.cls)
    return "\n".join(parts)


def _section(title: str, struct: type, leave_out: tuple[str, ...] = ()) -> list[str]:
    info = msgspec.inspect.type_info(struct)
    assert isinstance(info, msgspec.inspect.StructType)
    rows = [
        f"| `{field.encode_name}` | {_kind(field.type)} | {_default(field)} | {_meaning(field.type)} |"
        for field in info.fields
        if field.encode_name not in leave_out
    ]
    about = [] if leave_out else [(struct.__doc__ or "").strip(), ""]
    return [f"## {title}", "", *about, "| field | value | default | meaning |", "|---|---|---|---|", *rows, ""]


def _field(struct: type, name: str) -> Any:
    info = msgspec.inspect.type_info(struct)
    assert isinstance(info, msgspec.inspect.StructType)
    return next(field for field in info.fields if field.encode_name == name)


def _meaning(kind: Any) -> str:
    extra = kind.extra_json_schema if isinstance(kind, msgspec.inspect.Metadata) else None
    return str((extra or {}).get("description", "")).replace("|", "\\|")


def _kind(kind: Any) -> str:
    """In the words of TOML."""
    known = msgspec.inspect
    if isinstance(kind, known.Metadata):
        return _kind(kind.type)
    if isinstance(kind, known.UnionType):
        return " or ".join(dict.fromkeys(_kind(one) for one in kind.types if not isinstance(one, known.NoneType)))
    if isinstance(kind, known.LiteralType):
        return ", ".join(f"`{word}`" for word in kind.values if word)
    if isinstance(kind, known.ListType):
        return "list" if isinstance(kind.item_type, known.AnyType) else f"list of {_kind(kind.item_type)}"
    if isinstance(kind, known.DictType):
        return "table"
    return _WORDS[type(kind).__name__]


_WORDS = {
    "StructType": "table",
    "StrType": "text",
    "IntType": "whole number",
    "FloatType": "number",
    "BoolType": "true or false",
}


def _default(field: Any) -> str:
    value = field.default
    if value in (msgspec.NODEFAULT, "", None):
        return ""
    return f"`{value}`"
