"""Writes a lab file for a common question, adapted to the given server and machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ironbench import engines
from ironbench.devices import models
from ironbench.engines.administration import CHECKPOINT
from ironbench.engines.base import Engine
from ironbench.errors import FailureError, InputError, nearest
from ironbench.fields.new import NewLab
from ironbench.fields.row import Field, table
from ironbench.host.fingerprint import fingerprint
from ironbench.lab.new.context import FILL_IN, LabContext
from ironbench.lab.new.questions import KINDS, LabTemplate, warnings
from ironbench.lab.new.sections import head, measure
from ironbench.model.secrets import Secrets
from ironbench.model.system import System
from ironbench.paths import expanded

__all__ = [
    "FILL_IN",
    "KINDS",
    "LabContext",
    "fields",
    "lab_context",
    "lab_template",
    "names",
    "placeholders",
    "suggestions",
    "text",
    "warnings",
    "write",
]


def lab_context(kind: str, asked: NewLab, folder: Path | None) -> LabContext:
    """Returns the facts that a lab file of this kind needs. Queries the server if a DSN is given. Raises InputError and
    FailureError.

    `folder`: directory of the lab file. If it is None, the lab file names files by their absolute paths.
    """
    _require_fields(kind, asked)
    dsn = asked.dsn
    named = engines.get(asked.engine) if asked.engine else engines.default(("transactions", "data"), dsn or None)
    named = named.engine_for(dsn or None)
    if missing := named.missing(("transactions", "data")):
        cause = (
            f"lab files of this command run scripts, but {named.name} lacks a capability that scripts need: "
            f"{', '.join(missing)}"
        )
        raise InputError("lab new", cause, f"use one of: {', '.join(engines.able(('transactions', 'data')))}")
    if "://" in asked.other and not dsn:
        hint = "add --dsn with the address of the current server, or give --other the path of a program directory"
        raise InputError("--other", "is an address, but --dsn is missing", hint)
    if asked.capture and asked.script:
        raise InputError("--script", "cannot be combined with --capture", "remove one of the two")
    if asked.dump and not named.data_import.dumps:
        raise InputError("--dump", f"{named.name} cannot restore dumps", "use another engine, or remove --dump")
    files = {
        name: _relative_name(folder, f"--{name}", file)
        for name in ("dump", "index", "before", "after", "capture")
        if (file := getattr(asked, name))
    }
    system, secrets = named.validated(System(named.name, "new", dsn=dsn or None), 1)
    machine = fingerprint()
    memory_bytes = min(machine.memory_bytes, machine.limits.memory_bytes or machine.memory_bytes)
    known, lacks = _facts(system, secrets) if system.dsn else ({}, "")
    version = known.get("version") or named.identity(system, secrets).get("version", "")
    template, elsewhere = named.data_import.template_of(system.dsn) if system.dsn else ("", "")
    return LabContext(
        named,
        elsewhere,
        template,
        str(version),
        known.get("settings", {}),
        len(os.sched_getaffinity(0)),
        memory_bytes,
        lacks,
        scripts=tuple(_relative_name(folder, "--script", file) for file in asked.script),
        setting=asked.setting,
        other=_without_password(named, asked.other) if dsn else asked.other,
        other_version=_other_version(named, asked.other, str(version)) if asked.other and not dsn else "",
        devices=tuple(asked.device),
        today=_rate("today", asked.today),
        **files,
    )


def _other_version(engine: Engine, programs: str, version: str) -> str:
    """Returns the version of the engine's programs in the directory `programs`. Raises InputError if the directory has
    no such programs, or if their version is also `version`."""
    system, secrets = engine.validated(System(engine.name, "other", {"bin": programs}), 1)
    other = engine.identity(system, secrets).get("version", "")
    if other == version:
        cause = f"contains {engine.name} {version}, which the lab already measures"
        raise InputError(f"--other {programs}", cause, "give the path of the program directory of another version")
    return other


def lab_template(kind: str) -> LabTemplate:
    """Returns the template for a kind of lab. Raises InputError if there is no such kind."""
    if kind not in KINDS:
        raise InputError(f"lab new {kind}", "unknown kind", nearest(kind, list(KINDS)))
    return KINDS[kind]


def fields(kind: str) -> list[Field]:
    """Returns the fields that a kind of lab uses. Fields that only this kind uses come first."""
    return [table(NewLab)[name] for name in lab_template(kind).fields]


def _require_fields(kind: str, asked: NewLab) -> None:
    """Raises InputError if a field has no effect on this kind of lab, or if a required field is missing."""
    used = lab_template(kind)
    for field in table(NewLab).values():
        option, given = field.options[0], getattr(asked, field.attribute)
        if given and field.name not in used.fields:
            raise InputError(option, f"has no effect on `lab new {kind}`", f"remove {option}")
        if not given and field.name in used.required:
            raise InputError(f"lab new {kind}", f"{option} is missing", f"add {option} {field.placeholder}")


def suggestions(field: Field) -> list[str]:
    """Returns possible values of a field. Returns an empty list if the values cannot be listed."""
    able = engines.able(("transactions", "data"))
    if field.name == "engine":
        return list(able)
    if field.name == "setting":
        return list(dict.fromkeys(knob.name for name in able for knob in engines.get(name).traits.knobs))
    return list(models.models()) if field.name == "device" else []


def _without_password(engine: Engine, dsn: str) -> str:
    """Returns the DSN of the second server as it is written to the lab file, without the password."""
    if not dsn:
        return ""
    system, _ = engine.engine_for(dsn).validated(System(engine.name, "new", dsn=dsn), 1)
    return engine.data_import.template_of(system.dsn or dsn)[1]


def _rate(name: str, written: str | float) -> float:
    """Reads the rate in a field. The rate is a text if it is from a command-line option or a web form. Returns 0 if the
    field is empty. Raises InputError."""
    known = table(NewLab)[name]
    return known.row.range.read(known.options[0], written) if written and known.row.range else 0.0


def _relative_name(folder: Path | None, option: str, text: str) -> str:
    """Returns the name by which the lab file refers to a file. The name is relative if the file is below the directory
    of the lab file. Otherwise, it is absolute.

    Keeps the `@WEIGHT` of a script. Raises InputError if the file does not exist.
    """
    name, at, weight = text.partition("@") if option == "--script" else (text, "", "")
    path = expanded(name).absolute()
    if not path.exists():
        raise InputError(f"{option} {text}", "no such file", "give the path of an existing file")
    if folder is not None and path.is_relative_to(folder.absolute()):
        path = path.relative_to(folder.absolute())
    return f"{path}{at}{weight}"


def _facts(system: System, secrets: Secrets) -> tuple[dict[str, Any], str]:
    """Returns facts about an existing server, and a hint about the privilege for checkpoints. The hint is empty if the
    role has the privilege."""
    with engines.running(system, secrets, 1) as session:
        try:
            engines.get(session.engine).administration.require_rights(session, [("checkpoints", CHECKPOINT)])
        except InputError as error:
            return session.facts(), error.hint
        return session.facts(), ""


def write(path: Path, text: str) -> None:
    """Writes a new file. Raises InputError if the file already exists, and FailureError."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(
            str(path), "already exists and would be overwritten", "use another file name with -o"
        ) from None
    except OSError as error:
        raise FailureError(str(path), f"cannot be written: {error.strerror or error}") from error


def text(kind: str, here: LabContext, file: str) -> str:
    """Returns the text of a lab file. Raises InputError if this engine has nothing to vary for the question."""
    body = "\n".join(KINDS[kind].lines(here))
    marked = FILL_IN in body
    return "\n".join([*head(kind, here, file, marked), body, *measure(KINDS[kind].metric)])


def placeholders(text: str) -> list[tuple[int, str]]:
    """Returns the number and text of the lines in which the user must replace a value."""
    lines = enumerate(text.splitlines(), 1)
    return [(number, line.strip()) for number, line in lines if FILL_IN in line and not line.startswith("#")]


def names() -> Sequence[str]:
    return list(KINDS)
