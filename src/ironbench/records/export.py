"""Writes records, and the files to which they refer, into a bundle, without passwords."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ironbench.errors import InputError, UnwrittenError
from ironbench.host.durable import remove_abandoned_exports, sync, unfinished_file
from ironbench.model.record import Record
from ironbench.model.redact import redacted, redacted_toml
from ironbench.records.bundle import SUFFIX, Writer
from ironbench.records.evidence import READERS
from ironbench.records.labs import LAB_FILES, LabDirectory
from ironbench.records.make import software
from ironbench.records.store import RECORD, Store

_TEXTS = (".log", ".txt", ".csv")


def export(store: Store, records: Sequence[Record], out: Path, lab: LabDirectory | None = None) -> int:
    """Writes the bundle atomically. Returns the number of its records. Raises InputError or UnwrittenError.

    `lab`: the lab to which the records belong. The lab's plan is included, so that the lab is complete on another
    machine. If `lab` is None, only the records are written.
    """
    if out.suffix != SUFFIX:
        raise InputError(f"-o {out}", f"does not end in {SUFFIX}", f"use -o {out}{SUFFIX}")
    if not records:
        raise InputError(str(store.directory), "contains no records to export", "create records with `ironbench run`")
    try:
        remove_abandoned_exports(out.parent)
        with unfinished_file(out.with_name(f".{out.name}.{os.getpid()}.tmp")) as aside:
            with aside.open("wb") as file:
                writer = Writer(file)
                _fill(writer, store, records, lab)
                schema = max(record.schema for record in records)
                writer.close(software()["ironbench"], schema, (lab.path.resolve().name or "lab") if lab else "")
            sync(aside)
            aside.rename(out)
            sync(out.parent)
    except OSError as error:
        raise UnwrittenError(f"-o {out}", error.strerror or str(error), "use another file") from error
    return len(records)


def _fill(writer: Writer, store: Store, records: Sequence[Record], lab: LabDirectory | None) -> None:
    for record in records:
        _add(writer, store, record)
    shared = {
        "machines": {key for record in records for key in (record.machine, record.server_machine)},
        "engines": {record.engine for record in records},
        "scripts": {key for record in records for key in record.scripts.values()},
    }
    for kind, keys in shared.items():
        for key in sorted(keys - {""}):
            path = store.directory / kind / f"{key}.json"
            # The document is empty if the file is damaged. The store has already warned of this.
            if store.shared(kind, key):
                writer.add(f"{kind}/{key}.json", _without_secrets(path.read_bytes()))
    if lab is not None:
        for file in sorted((*lab.path.glob("*.json"), *lab.path.glob("*.toml"))):
            if file.name in LAB_FILES or file.name.startswith("stage-"):
                writer.add(f"lab/{file.name}", _lab_file(file))


def _add(writer: Writer, store: Store, record: Record) -> None:
    """Adds a record and its files. Skips damaged files. A file from which a password is removed gets a new digest."""
    folder, digests = store.path(record.id), {}
    damaged = store.damage(record.id)
    for name in READERS:
        if name in damaged:
            store.leave_out(folder / name, damaged[name])
        elif (path := folder / name).is_file():
            data = path.read_bytes()
            clean = _text(data) if name.endswith(_TEXTS) else data
            if clean != data and name in record.files:
                digests[name] = hashlib.sha256(clean).hexdigest()
            writer.add(f"trials/{record.id}/{name}", clean)
    document = _without_secrets((folder / RECORD).read_bytes())
    if digests:
        kept = msgspec.json.decode(document)
        document = msgspec.json.encode(kept | {"files": kept["files"] | digests})
    writer.add(f"trials/{record.id}/{RECORD}", document)


def _lab_file(path: Path) -> bytes:
    data = path.read_bytes()
    return redacted_toml(data.decode()).encode() if path.suffix == ".toml" else _without_secrets(data)


def _without_secrets(data: bytes) -> bytes:
    """Returns the JSON document with passwords removed from all texts. If there are no passwords, the document is
    unchanged byte for byte."""
    document = msgspec.json.decode(data)
    clean = _clean(document, "")
    return data if clean == document else msgspec.json.encode(clean)


def _clean(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _clean(part, str(key)) for key, part in value.items()}
    if isinstance(value, list):
        return [_clean(part, name) for part in value]
    return redacted(value, name) if isinstance(value, str) else value


def _text(data: bytes) -> bytes:
    text = data.decode(errors="surrogateescape")
    return "".join(redacted(line) for line in text.splitlines(keepends=True)).encode(errors="surrogateescape")
