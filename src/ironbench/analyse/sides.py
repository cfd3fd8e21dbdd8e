"""What one side of a comparison may stand for: trials of one system on one machine under one kind of load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from ironbench.analyse.archive import Archive
from ironbench.analyse.differences import NOT_SET, differing
from ironbench.analyse.study import facts
from ironbench.errors import InputError
from ironbench.model.record import Record

_NAMED = 3
"""So many facts are named in which systems of one label differ."""


def require_one_system(name: str, works: Mapping[str, Sequence[Record]], archive: Archive) -> None:
    """`works`: the side's trials by the work they did. InputError: they are of two machines, or those of one work are
    of two systems or under two kinds of load."""
    trials = [record for group in works.values() for record in group]
    machines = {record.machine: record for record in trials}
    if len(machines) > 1:
        _refuse(name, "of two machines", list(machines.values())[:2], archive, ("machine.",))
    for work, group in works.items():
        found = {_system(record, archive): record for record in group}
        if len(found) > 1:
            _refuse(
                name,
                f"of two systems that did {work}",
                list(found.values())[:2],
                archive,
                ("system.", "engine.version"),
            )
        loads = {record.cell.load.shape: record for record in group}
        if len(loads) > 1:
            _refuse(name, f"of {work} under two kinds of load", list(loads.values())[:2], archive, ("load.",))


def _refuse(name: str, what: str, two: Sequence[Record], archive: Archive, told: tuple[str, ...]) -> None:
    known = [facts(record, archive) for record in two]
    rows = [row for row in differing(known) if row.startswith(told)]
    said = "; ".join(f"{row} {' against '.join(flat.get(row, NOT_SET) for flat in known)}" for row in rows[:_NAMED]) + (
        f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    )
    series = list(dict.fromkeys(record.series for record in two))
    named = f"name a series ({' or '.join(series)})" if len(series) > 1 else "name a trial by its id"
    raise InputError(name, f"has trials {what}{f' ({said})' if said else ''}", f"{named}, or give each its --label")


def _system(record: Record, archive: Archive) -> str:
    version = archive.engine(record.engine).get("version", "") if record.engine else ""
    return msgspec.json.encode((replace(record.system, label=""), version), order="sorted").decode()
