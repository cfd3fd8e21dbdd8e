"""Takes the records out of a parcel into a store: all of them, or none and nothing is written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ironbench.errors import InputError, UnwrittenError
from ironbench.model.record import SCHEMA, Record
from ironbench.record.parcel import Reader
from ironbench.words import counted

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


def arrive(parcel: Path, directory: Path) -> Arrived:
    """`take_in` of a file."""
    with Reader(parcel) as reader:
        return take_in(reader, directory)


def take_in(reader: Reader, directory: Path) -> Arrived:
    """Everything is verified before the first byte is written; then written aside, made durable and renamed.

    InputError: truncated, altered, newer, holds what does not belong, or records that are here with other content.
    """
    records = _verified(reader)
    known = _here(reader, directory, records)
    _lab_fits(reader, directory, records)
    _room(reader, directory)
    aside = directory / f".importing-{os.getpid()}"
    shutil.rmtree(aside, ignore_errors=True)
    try:
        _unpack(reader, aside, known)
        _place(aside, directory)
    except OSError as error:
        raise UnwrittenError(str(directory), error.strerror or str(error), "free space, or name another") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    new = tuple(record for id, record in records.items() if id not in known)
    return Arrived(new, len(known))


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
            raise InputError(str(reader.path), f"{name} is the record {record.id!r}", "do not trust this file")
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


def _here(reader: Reader, directory: Path, ids: Iterable[str]) -> set[str]:
    """Those that are in the store already. InputError where one is there with other content."""
    trials = directory / "trials"
    there = _names(trials).intersection(ids) if trials.is_dir() else set()
    for id in there:
        try:
            kept = msgspec.json.decode((trials / id / "record.json").read_bytes())
        except (OSError, msgspec.DecodeError):
            kept = None
        if kept != msgspec.json.decode(reader.read(f"trials/{id}/record.json")):
            raise InputError(id, f"is in {directory} already, with other content", "import into another --results")
    return there


def _lab_fits(reader: Reader, directory: Path, ids: Container[str]) -> None:
    """A lab has a directory of its own. Records of it may be there without a plan: it is placed last."""
    plan, trials = directory / "plan.json", directory / "trials"
    if "lab/plan.json" in reader.files and not plan.exists() and trials.is_dir():
        others = [name for name in _names(trials) if not name.startswith(".") and name not in ids]
        if others:
            cause = f"holds {counted(len(others), 'record')} that {'is' if len(others) == 1 else 'are'} not of this lab"
            raise InputError(str(directory), cause, "a lab has a directory of its own: name another with --results")
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
    base = os.fspath(aside)  # forty thousand Paths take longer to make than their files
    made: set[str] = set()
    for name in reader.files:
        room, _, rest = name.partition("/")
        if room == "trials" and rest.partition("/")[0] in known:
            continue
        folder, _, file = name.rpartition("/")
        folder = base if room == "lab" else f"{base}/{folder}"
        if folder not in made:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103
            made.add(folder)
        _write(f"{folder}/{file}", reader.read(name))
    os.sync()  # one for all: ten thousand fsyncs take minutes on a disk


def _write(path: str, data: bytes) -> None:
    with open(path, "xb", buffering=0) as file:  # noqa: PTH123
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]


def _names(directory: Path) -> set[str]:
    with os.scandir(directory) as entries:
        return {entry.name for entry in entries}


def _place(aside: Path, directory: Path) -> None:
    """Shared files first, then records, the lab's plan last: whoever looks meanwhile finds only whole things."""
    for kind in ("machines", "engines", "scripts", "trials"):
        if not (aside / kind).is_dir():
            continue
        final = directory / kind
        final.mkdir(parents=True, exist_ok=True)
        there = _names(final)
        for name in _names(aside / kind) - there:
            os.rename(f"{aside}/{kind}/{name}", f"{final}/{name}")  # noqa: PTH104
    for found in sorted(
        (path for path in aside.iterdir() if path.is_file()), key=lambda path: path.name == "plan.json"
    ):
        found.rename(directory / found.name)
    os.sync()
