"""Takes the records out of a parcel into a store: all of them, or none and nothing is written."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ironbench.errors import InputError, UnwrittenError
from ironbench.model.record import SCHEMA, Record
from ironbench.record.parcel import Reader

_DECODER = msgspec.json.Decoder(Record)
_SPARE_BYTES = 64 << 20


class _Schema(msgspec.Struct):
    schema: int


@dataclass(frozen=True, slots=True)
class Arrived:
    """What an import did."""

    new: tuple[Record, ...]
    known: int
    """Records that were there already, the same to the byte."""
    lab: str
    """Name of the lab whose directory this is now; empty for plain records."""


def lab_of(parcel: Path) -> str:
    """Name of the lab in a parcel; empty where it holds plain records. InputError."""
    with Reader(parcel) as reader:
        return reader.manifest.lab


def arrive(parcel: Path, directory: Path) -> Arrived:
    """Everything is verified before the first byte is written; then written aside, made durable and renamed.

    InputError: truncated, altered, newer, holds what does not belong, or records that are here with other content.
    """
    with Reader(parcel) as reader:
        records = _verified(reader)
        known = {id for id in records if _is_here(reader, directory, id)}
        _lab_fits(reader, directory)
        _room(reader, directory)
        aside = directory / f".importing-{os.getpid()}"
        try:
            _unpack(reader, aside, known)
            _place(aside, directory)
        except OSError as error:
            raise UnwrittenError(str(directory), error.strerror or str(error), "free space, or name another") from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    new = tuple(record for id, record in records.items() if id not in known)
    return Arrived(new, len(known), reader.manifest.lab)


def _verified(reader: Reader) -> dict[str, Record]:
    """Every record by id. Reads each entry once, so that its checksum is known to hold."""
    found: dict[str, Record] = {}
    for name in reader.files:
        data = reader.read(name)
        room, _, rest = name.partition("/")
        if room != "trials" or not name.endswith("/record.json"):
            continue
        record = _record(reader, name, data)
        if record.id != rest.partition("/")[0]:
            raise InputError(str(reader.path), f"{name} is the record {record.id}", "do not trust this file")
        found[record.id] = record
    orphans = [name for name in reader.files if name.startswith("trials/") and name.split("/")[1] not in found]
    if orphans or not found:
        raise InputError(str(reader.path), f"{orphans[0] if orphans else 'it'} has no record", "do not trust this file")
    return found


def _record(reader: Reader, name: str, data: bytes) -> Record:
    try:
        schema = msgspec.json.decode(data, type=_Schema).schema
        if schema > SCHEMA:
            cause = f"{name} has schema {schema}, newer than {SCHEMA}"
            raise InputError(str(reader.path), cause, "import it with the ironbench that wrote it, or a newer one")
        return _DECODER.decode(data)
    except msgspec.DecodeError as error:
        raise InputError(str(reader.path), f"{name} is no record: {error}", "do not trust this file") from None


def _is_here(reader: Reader, directory: Path, id: str) -> bool:
    path = directory / "trials" / id / "record.json"
    try:
        here = path.read_bytes()
    except FileNotFoundError:
        return False
    if msgspec.json.decode(here) != msgspec.json.decode(reader.read(f"trials/{id}/record.json")):
        raise InputError(id, f"is in {directory} already, with other content", "import into another --results")
    return True


def _lab_fits(reader: Reader, directory: Path) -> None:
    """A lab has a directory of its own."""
    plan = directory / "plan.json"
    if plan.exists() and ("lab/plan.json" not in reader.files or plan.read_bytes() != reader.read("lab/plan.json")):
        raise InputError(str(directory), "holds another lab", "import into another directory with --results")


def _room(reader: Reader, directory: Path) -> None:
    needed = sum(length for length, _ in reader.files.values()) + _SPARE_BYTES
    there = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    free = shutil.disk_usage(there).free
    if free < needed:
        cause = f"needs {needed >> 20} MiB, and {free >> 20} MiB are free"
        raise InputError(f"--results {directory}", cause, "free space, or name another directory")


def _unpack(reader: Reader, aside: Path, known: set[str]) -> None:
    made: set[str] = set()
    for name in reader.files:
        parts = name.split("/")
        if parts[0] == "trials" and parts[1] in known:
            continue
        folder = "/".join(parts[:-1]) if parts[0] != "lab" else ""
        if folder not in made:
            (aside / folder).mkdir(parents=True, exist_ok=True)
            made.add(folder)
        (aside / folder / parts[-1]).write_bytes(reader.read(name))
    os.sync()  # one for all: ten thousand fsyncs take minutes on a disk


def _place(aside: Path, directory: Path) -> None:
    """Shared files first, then records, the lab's plan last: whoever looks meanwhile finds only whole things."""
    for kind in ("machines", "engines", "trials"):
        if not (aside / kind).is_dir():
            continue
        (directory / kind).mkdir(parents=True, exist_ok=True)
        for found in (aside / kind).iterdir():
            final = directory / kind / found.name
            if not final.exists():
                found.rename(final)
    for found in sorted(
        (path for path in aside.iterdir() if path.is_file()), key=lambda path: path.name == "plan.json"
    ):
        found.rename(directory / found.name)
    os.sync()
