"""Writes records, and what they refer to, into a parcel. Passwords stay here."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ironbench.errors import InputError, UnwrittenError
from ironbench.model.record import Record
from ironbench.record.labs import LabDirectory
from ironbench.record.parcel import EVIDENCE, SUFFIX, Writer
from ironbench.record.redact import redacted, redacted_toml
from ironbench.record.software import software
from ironbench.record.store import Store

_TEXTS = (".log", ".txt", ".csv")


def export(store: Store, records: Sequence[Record], out: Path, lab: LabDirectory | None = None) -> int:
    """The file whole or not at all; how many records it holds. InputError, UnwrittenError.

    `lab`: its plan goes along, so that the lab is the same lab elsewhere.
    """
    if out.suffix != SUFFIX:
        raise InputError(f"-o {out}", f"does not end in {SUFFIX}", f"write -o {out}{SUFFIX}")
    if not records:
        raise InputError(str(store.directory), "holds no records to export", "make some with `ironbench run`")
    aside = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        with aside.open("wb") as file:
            writer = Writer(file)
            _fill(writer, store, records, lab)
            schema = max(record.schema for record in records)
            writer.close(software()["ironbench"], schema, (lab.path.resolve().name or "lab") if lab else "")
            file.flush()
            os.fsync(file.fileno())
        aside.rename(out)
    except OSError as error:
        raise UnwrittenError(f"-o {out}", error.strerror or str(error), "name another place") from error
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
    return len(records)


def _fill(writer: Writer, store: Store, records: Sequence[Record], lab: LabDirectory | None) -> None:
    for record in records:
        folder = store.path(record.id)
        writer.add(f"trials/{record.id}/record.json", _without_secrets((folder / "record.json").read_bytes()))
        for name in EVIDENCE:
            path = folder / name
            if path.is_file():
                data = path.read_bytes()
                writer.add(f"trials/{record.id}/{name}", _text(data) if name.endswith(_TEXTS) else data)
    shared = {
        "machines": {record.machine for record in records},
        "engines": {record.engine for record in records},
        "scripts": {key for record in records for key in record.scripts.values()},
    }
    for kind, keys in shared.items():
        for key in sorted(keys - {""}):
            path = store.directory / kind / f"{key}.json"
            if path.is_file():
                writer.add(f"{kind}/{key}.json", _without_secrets(path.read_bytes()))
    if lab is not None:
        for path in sorted((*lab.path.glob("*.json"), *lab.path.glob("*.toml"))):
            if path.name in ("lab.toml", "plan.json", "peak.json") or path.name.startswith("stage-"):
                writer.add(f"lab/{path.name}", _lab_file(path))


def _lab_file(path: Path) -> bytes:
    data = path.read_bytes()
    return redacted_toml(data.decode()).encode() if path.suffix == ".toml" else _without_secrets(data)


def _without_secrets(data: bytes) -> bytes:
    """The JSON document with every text in it redacted; unchanged, to the byte, where there is nothing to redact."""
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
