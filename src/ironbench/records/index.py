"""What `list` shows and a selection asks of every record, in one file, so that ten thousand need not be opened.

The index is a memory, never a source: each row counts only while its `record.json` is still the file it was read from
(inode, time of change and size), so records may come, go or break behind its back, and deleting it costs one slow
call. Whoever finds it stale writes a new one aside and renames it; of several at once the last one stays, and what it
lacks is read again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Set
from pathlib import Path

import msgspec
from msgspec.structs import force_setattr

from ironbench.model.record import Record, machine_of, machines_of
from ironbench.model.sample import listed
from ironbench.model.system import Choice, Load, System
from ironbench.records.durable import unfinished_file
from ironbench.workloads import compared

NAME = "index.json"
VERSION = 12
Stamp = tuple[int, int, int]
_REPEATED = ("series", "label", "workload", "cell", "purpose", "status", "alike", "engine", "machine")
"""Fields that many rows share."""


class Listed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One record in short."""

    id: str
    series: str
    label: str
    workload: str
    cell: str
    purpose: str
    status: str
    started_at: str
    throughput: float | None
    response_time_p99_s: float | None
    """None, too, where the trial has too few transactions for it, or did not keep its rate."""
    rate: float | None
    """Of an open loop."""
    clients: int
    alike: str
    """The same for all trials of one system that did one work under one shape of load on one machine."""
    tags: dict[str, str] = {}
    engine: str = ""
    machine: str = ""
    """Content key of the fingerprint of the machine that did the work; empty: unknown."""


class _Kept(msgspec.Struct, frozen=True):
    version: int
    rows: dict[str, tuple[Stamp, Listed]]


_DECODER = msgspec.json.Decoder(_Kept)
"""Made at import: two threads that use a type for the first time at once crash (msgspec 0.22, serve/app.py)."""


def short(record: Record) -> Listed:
    """The record's row."""
    return Listed(
        id=record.id,
        series=record.series,
        label=record.system.label,
        workload=record.choice.workload,
        cell=record.cell.name,
        purpose=record.purpose,
        status=record.status.value,
        started_at=record.started_at,
        throughput=record.metrics.get("throughput"),
        response_time_p99_s=record.metrics.get("response_time_p99_s")
        if listed(record, "response_time_p99_s")
        else None,
        rate=record.cell.load.rate,
        clients=record.cell.load.clients,
        alike=alike(record.system, record.choice, record.cell.load, machines_of(record)),
        tags=record.tags,
        engine=record.system.engine,
        machine=machine_of(record),
    )


def alike(system: System, choice: Choice, load: Load, machines: tuple[str, str]) -> str:
    """See `Listed.alike`. `machines`: as `machines_of` a record."""
    data = msgspec.json.encode((compared(choice), system, load.shape, machines), order="sorted")
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def rows(directory: Path, folders: Mapping[str, Stamp], read: Callable[[str], Record | None]) -> list[Listed]:
    """A row for each of `folders`, oldest first; `read` opens those that the index does not hold as they are now.

    A folder whose record cannot be read (None) is left out, and read again next time.
    """
    kept = _kept(directory / NAME)
    current: dict[str, tuple[Stamp, Listed]] = {}
    for name, stamp in folders.items():
        known = kept.get(name)
        if known is not None and known[0] == stamp:
            current[name] = known
        elif (record := read(name)) is not None:
            current[name] = (stamp, short(record))
    if current != kept:
        _keep(directory / NAME, current)
    return sorted((row for _, row in current.values()), key=lambda row: (row.started_at, row.id))


def remembered(
    directory: Path, names: Set[str], stamp: Callable[[str], Stamp | None], read: Callable[[str], Record | None]
) -> dict[str, Listed]:
    """A row for each of `names`, by name; those that the index holds are taken from it unseen, the others read.

    For who keeps rows in memory: a hundred thousand stamps take half a second. A record that broke, or was replaced
    under its own name, is not noticed.
    """
    kept = dict(_kept(directory / NAME))
    gone, new = kept.keys() - names, names - kept.keys()
    for name in gone:
        del kept[name]
    found = False
    for name in sorted(new):
        # Its stamp is taken first: what changes meanwhile is read again by whoever compares stamps.
        if (seen := stamp(name)) is not None and (record := read(name)) is not None:
            kept[name], found = (seen, short(record)), True
    if gone or found:
        _keep(directory / NAME, kept)
    known: dict[str, str] = {}
    for _, row in kept.values():
        for field in _REPEATED:  # one text for all rows that have it: a third of the memory
            text = getattr(row, field)
            force_setattr(row, field, known.setdefault(text, text))
    return {name: row for name, (_, row) in kept.items()}


def stamp_of(trials: Path, name: str) -> Stamp | None:
    """What its record is known by; None: it has none."""
    try:
        seen = os.stat(f"{os.fspath(trials)}/{name}/record.json")  # noqa: PTH116 - ten thousand Paths take as long
    except OSError:
        return None
    return seen.st_ino, seen.st_mtime_ns, seen.st_size


def stamps(trials: Path) -> Iterator[tuple[str, Stamp | None]]:
    """Each name under `trials`, and what its record is known by (None: it has none); not those in writing."""
    with os.scandir(trials) as entries:
        names = [entry.name for entry in entries if not entry.name.startswith(".")]
    for name in names:
        yield name, stamp_of(trials, name)


def _kept(path: Path) -> Mapping[str, tuple[Stamp, Listed]]:
    """Empty where there is no index that this version can use."""
    with contextlib.suppress(OSError, msgspec.DecodeError):
        kept = _DECODER.decode(path.read_bytes())
        if kept.version == VERSION:
            return kept.rows
    return {}


def _keep(path: Path, rows: dict[str, tuple[Stamp, Listed]]) -> None:
    """Not synced: a torn index is no index. A directory that cannot be written is read without one."""
    with contextlib.suppress(OSError), unfinished_file(path.with_name(f".{path.name}.{os.getpid()}.tmp")) as aside:
        aside.write_bytes(msgspec.json.encode(_Kept(VERSION, rows)))
        aside.rename(path)
