"""Imports the records of a bundle into a store: either all records, or none of them.

The bundle is unpacked into a separate store and validated there like user input.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ironbench.errors import InputError, UnwrittenError
from ironbench.host import copies, durable, space
from ironbench.model.record import SCHEMA, Record
from ironbench.records import examine
from ironbench.records.bundle import Reader
from ironbench.records.labs import IMPORTED, PLAN
from ironbench.records.store import RECORD, is_shared

_SPARE_BYTES = 64 << 20


class _Schema(msgspec.Struct):
    schema: int


@dataclass(frozen=True, slots=True)
class ImportResult:
    """Result of an import."""

    new: tuple[Record, ...]
    known: int
    """Number of records that already existed with identical content."""
    directory: Path
    """Directory of the store that contains the records."""


def import_bundle(reader: Reader, directory: Path) -> ImportResult:
    """Imports a bundle. Unpacks it into a temporary store, validates and syncs this store, and then moves its files to
    the destination by renaming them.

    A lab needs its own directory. If `directory` contains other records, the destination of a lab is a directory in
    `directory/labs`. The directory of an imported lab is marked (`labs.IMPORTED`), because the commands in the lab file
    come from another machine.

    Raises InputError if the bundle is truncated or altered, contains unexpected files, or was written by a newer
    version. Also raises InputError if the destination contains different records with the same ids.
    """
    records = _records(reader)
    directory = _place(reader, directory, records)
    known = _here(reader, directory, records)
    _lab_fits(reader, directory)
    _require_room(reader, directory)
    made = [path for path in (directory, *directory.absolute().parents) if not path.exists()]
    new = tuple(record for id, record in records.items() if id not in known)
    try:
        with durable.unfinished_folder(directory / f".importing-{os.getpid()}") as aside:
            _unpack(reader, aside, known)
            try:
                examine.unpacked(aside, new)
            except ValueError as error:
                raise reader.distrusted(str(error)) from None
            if any(not (directory / name).exists() for name in _of_lab(reader)):
                origin = {"file": reader.path.name, "ironbench": reader.manifest.ironbench}
                (aside / IMPORTED).write_bytes(msgspec.json.encode(origin))
            copies.sync(aside)
            _move_into_store(aside, directory)
            copies.sync(directory)
    except OSError as error:
        raise UnwrittenError(
            str(directory), error.strerror or str(error), "free some space, or use another directory"
        ) from error
    finally:
        for path in made:
            with contextlib.suppress(OSError):  # not empty after a successful import
                path.rmdir()
    return ImportResult(new, len(known), directory)


def _records(reader: Reader) -> dict[str, Record]:
    """Returns every record by id, validated. Raises InputError."""
    records: dict[str, Record] = {}
    for name in reader.files:
        top, _, rest = name.partition("/")
        if top != "trials" or not name.endswith(f"/{RECORD}"):
            continue
        record = _record(reader, name)
        if record.id != rest.partition("/")[0]:
            raise reader.distrusted(f"{name} contains the record {record.id!r}")
        records[record.id] = record
    orphans = [name for name in reader.files if name.startswith("trials/") and name.split("/")[1] not in records]
    if orphans or not records:
        raise reader.distrusted(f"{orphans[0] if orphans else 'the file'} has no record")
    return records


def _record(reader: Reader, name: str) -> Record:
    data = reader.read(name)
    try:
        schema = msgspec.json.decode(data, type=_Schema).schema
        if schema > SCHEMA:
            cause = f"{name} has schema {schema}, but this ironbench supports only schemas up to {SCHEMA}"
            raise InputError(str(reader.path), cause, "import it with the same version of ironbench or a newer one")
        return examine.record(data)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise reader.distrusted(f"{name} is not a record: {error}") from None


def _place(reader: Reader, directory: Path, ids: Collection[str]) -> Path:
    """Returns the directory for the bundle's records. For a lab that would be among unrelated records, this is a
    separate directory."""
    trials = directory / "trials"
    if PLAN not in _of_lab(reader) or (directory / PLAN).exists() or not trials.is_dir():
        return directory
    others = [name for name in _names(trials) if not name.startswith(".") and name not in ids]
    return directory / "labs" / (reader.manifest.lab or "lab") if others else directory


def _of_lab(reader: Reader) -> dict[str, str]:
    """Returns the files of the lab's directory: name in the directory → name in the bundle."""
    return {name.removeprefix("lab/"): name for name in reader.files if name.startswith("lab/")}


def _here(reader: Reader, directory: Path, ids: Iterable[str]) -> set[str]:
    """Returns the ids of those records that are both in the bundle and in the store. Raises InputError if such a record
    has different contents in the store."""
    trials = directory / "trials"
    there = _names(trials).intersection(ids) if trials.is_dir() else set()
    for id in there:
        try:
            kept = msgspec.json.decode((trials / id / RECORD).read_bytes())
        except (OSError, msgspec.DecodeError, RecursionError):
            kept = None
        if kept != msgspec.json.decode(reader.read(f"trials/{id}/{RECORD}")):
            raise InputError(
                id,
                f"is already in {directory}, with different contents",
                "import the file into another directory with --results",
            )
    return there


def _lab_fits(reader: Reader, directory: Path) -> None:
    """Checks that a directory contains the same lab or none, because lab files are never replaced. Raises
    InputError."""
    plan = directory / PLAN
    another = InputError(
        str(directory), "contains another lab", "import the file into another directory with --results"
    )
    if plan.exists() and PLAN not in _of_lab(reader):
        raise another
    for name, entry in _of_lab(reader).items():
        there = directory / name
        if there.exists() and there.read_bytes() != reader.read(entry):
            raise another


def _require_room(reader: Reader, directory: Path) -> None:
    needed = sum(length for length, _ in reader.files.values()) + _SPARE_BYTES
    free = space.free_bytes(space.existing(directory))
    if free < needed:
        cause = f"needs {needed >> 20} MiB, but only {free >> 20} MiB are free"
        raise InputError(f"--results {directory}", cause, "free some space, or use another directory")


def _unpack(reader: Reader, aside: Path, known: Collection[str]) -> None:
    # Paths are texts here: creating forty thousand Path objects takes longer than writing the files.
    base = os.fspath(aside)
    made: set[str] = set()
    for name in reader.files:
        top, _, rest = name.partition("/")
        if top == "trials" and rest.partition("/")[0] in known:
            continue
        folder, _, file = name.rpartition("/")
        folder = base if top == "lab" else f"{base}/{folder}"
        if folder not in made:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103
            made.add(folder)
        with open(f"{folder}/{file}", "xb") as out:  # noqa: PTH123
            for chunk in reader.chunks(name):
                out.write(chunk)


def _names(directory: Path) -> set[str]:
    with os.scandir(directory) as entries:
        return {entry.name for entry in entries}


def _move_into_store(aside: Path, directory: Path) -> None:
    """Moves the files into the store. Files to which others refer are moved first: shared files, then records, and the
    plan of the lab last. Readers therefore never find a record or a lab with missing files."""
    for kind in ("machines", "engines", "scripts", "trials"):
        if not (aside / kind).is_dir():
            continue
        final = directory / kind
        final.mkdir(parents=True, exist_ok=True)
        there = _names(final)
        for name in _names(aside / kind):
            if name not in there or (kind != "trials" and not is_shared(final / name, Path(name).stem)):
                os.rename(f"{aside}/{kind}/{name}", f"{final}/{name}")  # noqa: PTH104
    for file in sorted((path for path in aside.iterdir() if path.is_file()), key=lambda path: path.name == PLAN):
        file.rename(directory / file.name)
