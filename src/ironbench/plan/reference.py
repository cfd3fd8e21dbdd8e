"""Generates the reference of lab files from the types with which lab files are read. The reference is a Markdown page,
and a JSON schema for editors.
"""

from __future__ import annotations

import inspect
import json
from typing import Any, Literal, get_args, get_origin

import msgspec

from ironbench.fields.lab import LabFile
from ironbench.fields.row import Field, table
from ironbench.fields.sections import DeviceSection

_SECTIONS = ("system", "devices", "layout", "limits", "data", "workload", "load", "commands", "measure", "expect")


def schema() -> str:
    """Returns JSON Schema 2020-12 as text."""
    schema = msgspec.json.schema(LabFile)
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ironbench lab file",
        "required": ["question"],
        **schema,
    }
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def page() -> str:
    """Returns every section with its fields, in Markdown."""
    parts = [
        "# Lab file",
        "",
        "A lab file is a TOML file that declares an experiment. [The guide](../how/lab-files.md) explains how to",
        "write a lab file; this page lists every field. If the first line of a lab file is `#:schema` and the",
        "path of [lab-file.schema.json](lab-file.schema.json), editors with JSON schema support check the lab",
        "file.",
        "",
        "Sizes: MB is 10⁶ bytes, MiB is 2²⁰ bytes, GB is 10⁹ bytes, and GiB is 2³⁰ bytes. A single letter is a",
        "power of 1024 (`64K` is 64 KiB). Units of durations are `us`, `ms`, `s`, `m`, `h`, `d`. A number without",
        "a unit means bytes for a size and seconds for a duration. Engine settings (`system.set`) use the",
        "engine's own units. Relative paths are resolved against the lab file's directory.",
        "",
        *_section("Top level", LabFile, leave_out=_SECTIONS),
    ]
    for name in _SECTIONS:
        kind = table(LabFile)[name].section
        parts += _section(f"[{name}]", kind) if kind else _section("[devices.NAME]", DeviceSection)
    return "\n".join(parts)


def _section(title: str, struct: type[msgspec.Struct], leave_out: tuple[str, ...] = ()) -> list[str]:
    rows = [
        f"| `{name}` | {_kinds(field)} | {field.usual} | {field.row.help.replace('|', chr(92) + '|')} |"
        for name, field in table(struct).items()
        if name not in leave_out
    ]
    about = [] if leave_out else [inspect.cleandoc(struct.__doc__ or ""), ""]
    return [f"## {title}", "", *about, "| field | value | default | meaning |", "|---|---|---|---|", *rows, ""]


def _kinds(field: Field) -> str:
    """Returns the types of a field as text, such as `whole number or text`."""
    return " or ".join(dict.fromkeys(_words(kind) for kind in field.kinds))


def _words(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return ", ".join(f"`{word}`" for word in inner if word)
    if origin is list:
        return "list" if inner[0] is Any else f"list of {_words(inner[0])}"
    return _KINDS.get(origin or kind, "table")


_KINDS = {str: "text", int: "whole number", float: "number", bool: "true or false"}
