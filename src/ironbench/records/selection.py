"""Resolves the names on the command line of `report`, `compare`, `lead` and `record export` to records, configurations
of a lab, or labs."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ironbench.errors import InputError, nearest
from ironbench.model.lab import Factor
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record
from ironbench.records import Store
from ironbench.records.labs import LabDirectory
from ironbench.records.progress import by_place


def select(selection: Sequence[str], results: str) -> list[Record]:
    """Returns the records that the names select, without duplicates. Returns all records if there are no names. Raises
    InputError."""
    if not selection:
        return Store(Path(results)).all()
    return list({record.id: record for word in selection for record in _named_in(word, Path(results)).records}.values())


def directories(selection: Sequence[str], store: Store) -> list[str]:
    """Returns those names in a selection that mean directories.

    A name may be the name of a directory and also the label of records, because users often name a label after the data
    directory. If the directory contains no lab, the name means the records.
    """
    found = [word for word in selection if Path(word).is_dir()]
    unsure = [word for word in found if not LabDirectory(Path(word)).begun()]
    rows = store.listed() if unsure else []
    named = {name for row in rows for name in (row.id, row.series, row.label)}
    return [word for word in found if word not in unsure or word not in named]


@dataclass(frozen=True, slots=True)
class NamedRecords:
    """The meaning of a name on the command line: records, or configurations of a lab."""

    word: str
    records: list[Record]
    store: Store
    cells: tuple[str, ...] = ()
    """Names of configurations of the lab in `store`. Empty if the name means records, a series or a label."""


def both(a: str, b: str, results: str) -> tuple[NamedRecords, NamedRecords]:
    """Resolves two names as `named` does, but reads a directory of runs only once. Raises InputError for unknown
    names."""
    directory = LabDirectory(Path(results))
    if not directory.begun():
        with contextlib.suppress(InputError):
            of_a, of_b = directory.store.select_each((a, b))
            return NamedRecords(a, of_a, directory.store), NamedRecords(b, of_b, directory.store)
    return named(a, results), named(b, results)


def named(word: str, results: str) -> NamedRecords:
    """Resolves a name. Raises InputError for unknown names.

    In a lab's directory, the name may be a configuration, or values of factors (`new`, `server=new`). In any directory,
    it may be a record, a series or a label. `DIR` selects everything in another results directory, and `DIR/NAME`
    selects NAME there.
    """
    try:
        return _named_in(word, Path(results))
    except InputError:
        whole, inner = Path(word), Path(word).parent
        if _holds_records(whole):
            directory = LabDirectory(whole)
            records = directory.records() if directory.begun() else directory.store.all()
            return NamedRecords(word, list(records), directory.store)
        if "/" in word and _holds_records(inner):
            return _named_in(whole.name, inner)
        raise


def _named_in(word: str, results: Path) -> NamedRecords:
    return named_in(word, LabDirectory(results))


def named_in(word: str, directory: LabDirectory) -> NamedRecords:
    """Resolves a name within a directory. Raises InputError."""
    if not directory.begun():
        return NamedRecords(word, directory.store.select([word]), directory.store)
    lab = directory.lab()
    names = [setup.cell.name for setup in lab.measurable]
    if word in names:
        return NamedRecords(word, [one for one in _whole(directory) if one.cell.name == word], directory.store, (word,))
    if wanted := _levels(word, lab.factors):
        cells = tuple(name for name in names if wanted.items() <= lab.setup(name).cell.levels.items())
        if cells:
            records = [one for one in _whole(directory) if wanted.items() <= one.cell.levels.items()]
            # A fixed-rate configuration repeats another configuration and has the same values. Its records are selected
            # only if the name means several configurations.
            own = len(cells) == 1
            return NamedRecords(
                word, [one for one in records if not own or one.cell.name == cells[0]], directory.store, cells
            )
    try:
        return NamedRecords(word, directory.store.select([word]), directory.store)
    except InputError:
        levels = [f"{factor.name}={level}" for factor in lab.factors for level in factor.levels]
        raise InputError(
            word, "matches no configuration, value or record of this lab", nearest(word, [*names, *levels])
        ) from None


def _whole(directory: LabDirectory) -> list[Record]:
    """Returns the records of a lab. Incomplete attempts at blocks of interleaved systems are left out if the block was
    measured again."""
    records = directory.records()
    kept = {one.id for tries in by_place(records).values() for one in tries}
    return [one for one in records if one.purpose != Purpose.LAB or one.id in kept]


def _levels(word: str, factors: Sequence[Factor]) -> dict[str, str]:
    """Returns the values of factors that a text names. The text is either a single value, or a list of values that are
    separated by blanks. Returns an empty dict if any part of the text is not such a value. Raises InputError for a
    value that several factors have."""
    whole = _level(word, factors)
    parts = [whole] if whole else [_level(part, factors) for part in word.split()]
    return dict(part for part in parts if part) if all(parts) else {}


def _level(part: str, factors: Sequence[Factor]) -> tuple[str, str] | None:
    fitting = [
        (factor.name, level)
        for factor in factors
        for level in factor.levels
        if part in (level, f"{factor.name}={level}")
    ]
    if len(fitting) > 1:
        known = " and ".join(f'"{name}={level}"' for name, level in fitting)
        raise InputError(part, f"is a value of {len(fitting)} factors", f"write {known} in full")
    return fitting[0] if fitting else None


def _holds_records(path: Path) -> bool:
    return (path / "trials").is_dir()


def gathered(selection: Sequence[str], results: str) -> tuple[list[Record], list[Store]]:
    """Returns the records that the names select, and their stores. Without names, returns everything in `results` and
    its labs. Raises InputError."""
    found = [named(word, results) for word in selection] or _everything(Path(results))
    records = {record.id: record for one in found for record in one.records}
    return list(records.values()), [one.store for one in found]


def _everything(results: Path) -> list[NamedRecords]:
    places = [results, *sorted((results / "labs").glob("*/"))]
    stores = [Store(place) for place in places if _holds_records(place)]
    if not stores:
        raise InputError(
            str(results),
            "contains no records",
            "create records with `ironbench run`, or use another directory with --results",
        )
    return [NamedRecords(str(store.directory), store.all(), store) for store in stores]
