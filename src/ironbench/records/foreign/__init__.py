"""Imports, reads and selects foreign records: results of other programs in `foreign/ID.json` of a results directory."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ironbench.errors import InputError, nearest
from ironbench.host import durable
from ironbench.model.foreign import FORMAT, ForeignRecord
from ironbench.records.foreign import go_tpc, hammerdb, pgbench, sysbench
from ironbench.records.foreign.output import Output, Result, safe

FOLDER = "foreign"
PROGRAMS: dict[str, Callable[[Output], list[Result]]] = {
    "hammerdb": hammerdb.read,
    "go-tpc": go_tpc.read,
    "sysbench": sysbench.read,
    "pgbench": pgbench.read,
}
"""For each program, the function that reads the program's output."""
_MOST_BYTES = 32 << 20
"""Maximum size of a foreign record, far beyond the largest that is written."""
_DECODER = msgspec.json.Decoder(ForeignRecord)


def read(program: str, path: Path, label: str) -> list[ForeignRecord]:
    """Returns every result in the output of a program.

    Raises InputError if the program is unknown, or if the file is not the program's output or contains no complete
    result.
    """
    output, results = _results(program, path)
    return _records(output, program, results, label, path.name, output.digest())


def read_run(program: str, paths: Sequence[Path], label: str) -> ForeignRecord:
    """Returns the result of one run whose output is in several files.

    Raises InputError as `read` does, and if the program writes a single file, if a file contains several results, or if
    the files cannot belong to the same run.
    """
    parts = []
    for path in paths:
        output, results = _results(program, path)
        if program != "hammerdb":
            raise InputError(f"--from {program}", "accepts one file", "import each file separately")
        if len(results) > 1:
            cause = f"contains {len(results)} results, so it is unknown which of them belongs to the other files"
            raise output.refused(cause, "import each file with its own `ironbench record import`")
        parts.append((output, results[0]))
    digest = hashlib.sha256("".join(sorted(output.digest() for output, _ in parts)).encode()).hexdigest()
    names = ", ".join(path.name for path in paths)
    (record,) = _records(parts[0][0], program, [hammerdb.merged(parts)], label, names, digest)
    return record


def _results(program: str, path: Path) -> tuple[Output, list[Result]]:
    if program not in PROGRAMS:
        raise InputError(f"--from {program}", "unknown program", nearest(program, list(PROGRAMS)))
    output = Output(path, program)
    results = PROGRAMS[program](output)
    if not results:
        other = recognised(path)
        raise output.refused(
            "contains no complete result",
            f"the file is output of {other}: use --from {other}"
            if other
            else "the output may be truncated: let the program run to its end",
        )
    return output, results


def _records(
    output: Output, program: str, results: Sequence[Result], label: str, file: str, digest: str
) -> list[ForeignRecord]:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    records = [
        ForeignRecord(
            id=f"{program}-{digest[:12]}" + (f"-{number}" if len(results) > 1 else ""),
            program=program,
            version=one.version,
            label=safe(label) + (f" {number}" if label and len(results) > 1 else ""),
            file=safe(file),
            digest=digest,
            imported_at=now,
            started_at=one.started_at,
            elapsed_s=one.elapsed_s,
            clients=one.clients,
            facts=one.facts,
            metrics=one.metrics,
            parts=tuple(one.parts),
            seconds=one.columns(),
            failed_users=one.failed_users,
        )
        for number, one in enumerate(results, 1)
    ]
    try:
        return [_DECODER.decode(msgspec.json.encode(record)) for record in records]
    except msgspec.ValidationError as error:
        raise output.refused(
            f"contains impossible values ({error})", "import the unchanged output of the program"
        ) from None


def recognised(path: Path) -> str:
    """Returns the program that wrote the file, or an empty text if the file contains no result of a known program."""
    for program, reader in PROGRAMS.items():
        with suppress(InputError):
            if reader(Output(path, program)):
                return program
    return ""


def take_in(program: str, paths: Sequence[Path], label: str, directory: Path) -> tuple[list[ForeignRecord], int]:
    """Imports every result in the output of a program, or one result from several files. Returns the records, and how
    many of them existed already and were left unchanged. Raises UnwrittenError, and InputError as `read` and `read_run`
    do."""
    records = read(program, paths[0], label) if len(paths) == 1 else [read_run(program, paths, label)]
    known = {record.id: record for record in every(directory)}
    for record in records:
        if record.id not in known:
            durable.write_whole(directory / FOLDER / f"{record.id}.json", msgspec.json.encode(record))
    return [known.get(record.id, record) for record in records], sum(record.id in known for record in records)


def every(directory: Path, unread: list[str] | None = None) -> list[ForeignRecord]:
    """Returns the foreign records of a results directory, in the order of their import. `unread`: receives the names of
    files that are not readable foreign records."""
    found = []
    for path in sorted((directory / FOLDER).glob("*.json")):
        try:
            with path.open("rb") as file:
                record = _DECODER.decode(file.read(_MOST_BYTES))
        except (OSError, msgspec.DecodeError, RecursionError):
            record = None
        if record is None or record.id != path.stem or record.format > FORMAT:
            if unread is not None:
                unread.append(f"{FOLDER}/{path.name}")
            continue
        found.append(record)
    return sorted(found, key=lambda record: record.imported_at)


def named(word: str, directory: Path) -> list[ForeignRecord]:
    """Returns the foreign record with that id, or else all records with that label, or else all records of a file that
    was imported with that label. Returns an empty list if there are none."""
    records = every(directory)
    numbered = re.compile(re.escape(word) + r" [1-9]\d*")
    return (
        [one for one in records if one.id == word]
        or [one for one in records if one.label == word]
        or [one for one in records if numbered.fullmatch(one.label)]
    )


def with_labels(records: Sequence[ForeignRecord]) -> list[ForeignRecord]:
    """Returns the records with distinct names. If several records have the same name, their ids replace their
    labels."""
    names = [record.name for record in records]
    return [replace(one, label=one.id) if names.count(one.name) > 1 else one for one in records]
