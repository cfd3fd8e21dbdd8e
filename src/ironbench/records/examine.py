"""Validates imported files, because they can contain anything, like user input. Checks the types and ranges that the
model declares, sizes, digests, and references between files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from ironbench.catalogue.typed import document
from ironbench.model.constraints import Name
from ironbench.model.lab import Confirmation, Lab
from ironbench.model.machine import Machine
from ironbench.model.record import SCHEMA, Record
from ironbench.model.search import ChosenLoad
from ironbench.records import evidence, parquet
from ironbench.records.decoded import decoded
from ironbench.records.labs import BEST, CONFIRMATION, PEAK, PLAN, BaselinePeak, DeclaredStage, FrozenPlan, LabDirectory
from ironbench.words import grouped

T = TypeVar("T")

_MOST_VALUES = 30_000_000
"""Maximum number of values in one Parquet file: a hundred quantities per second for three days."""
_MOST_NAMES = 2_000
"""Maximum number of quantities in one file."""
_DEEPEST = 20
_LONGEST = 1 << 12
"""Maximum number of characters of a text about a machine or an engine."""
_LONGEST_DOCUMENT = 1 << 20
"""Maximum number of characters of a text in a record or a lab: a lab file, a command, a check."""
_LONGEST_NAME = 400
_LARGEST = 1 << 63
"""Largest permitted number in an imported file. All seeds, sizes in bytes and times in nanoseconds are smaller."""


class _Engine(msgspec.Struct):
    version: str = ""
    settings: dict[str, str | None] = {}


class _Script(msgspec.Struct):
    text: str


def record(data: bytes) -> Record:
    """Decodes and validates a record. Raises a ValueError that describes the fault."""
    _within_bounds(_decoded(data, Any))
    try:
        found = decoded(data)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error
    if found.schema > SCHEMA:
        raise ValueError(f"has schema {found.schema}, but this ironbench supports only schemas up to {SCHEMA}")
    return found


def unpacked(directory: Path, records: Sequence[Record]) -> None:
    """Validates all other files of the store into which a bundle was unpacked. Raises ValueError with the name of the
    file and the fault."""
    for one in records:
        for name in evidence.READERS:
            path = directory / "trials" / one.id / name
            if path.exists():
                _in(path, directory, partial(_file, one=one, name=name))
    for kind, check in (("machines", _machine), ("engines", _engine), ("scripts", _script)):
        for path in sorted((directory / kind).glob("*.json")):
            _in(path, directory, check)
    if LabDirectory(directory).begun():
        _in(directory / PLAN, directory, _lab)


def _in(path: Path, directory: Path, check: Callable[[Path], None]) -> None:
    try:
        check(path)
    except evidence.UNREADABLE as error:
        raise ValueError(f"{path.relative_to(directory)}: {evidence.fault(error)}") from error


def _decoded(data: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _file(path: Path, one: Record, name: str) -> None:
    if name in one.files and evidence.digest_of(path) != one.files[name]:
        raise ValueError("does not match the digest in the record")
    if name.endswith(".parquet") and parquet.values(path) > _MOST_VALUES:
        raise ValueError(f"contains more than {grouped(_MOST_VALUES)} values")
    content = evidence.READERS[name](path)
    if isinstance(content, dict):
        _names(content)
        for columns in content.values() if name == evidence.OBSERVED else [content]:
            for column, values in columns.items() if name.endswith(".parquet") else ():
                _numbers(column, values)
    elif isinstance(content, list):
        _names(one.name for one in content)


def _names(names: Iterable[str]) -> None:
    listed = list(names)
    if len(listed) > _MOST_NAMES:
        raise ValueError(f"contains more than {_MOST_NAMES} quantities")
    msgspec.convert(listed, list[Name])


def _numbers(name: str, values: np.ndarray[Any, np.dtype[np.float64]]) -> None:
    known = values if name == "t_s" else values[~np.isnan(values)]
    if known.size and not np.abs(known).max() <= _LARGEST:  # this condition also rejects NaN
        raise ValueError(f"{name} has impossible values")


def _machine(path: Path) -> None:
    _within_bounds(_decoded(path.read_bytes(), Any), longest=_LONGEST, lowest=-1)
    _decoded(path.read_bytes(), Machine)


def _engine(path: Path) -> None:
    _within_bounds(_decoded(path.read_bytes(), Any), longest=_LONGEST, lowest=-1)
    _decoded(path.read_bytes(), _Engine)


def _script(path: Path) -> None:
    _within_bounds(_decoded(path.read_bytes(), Any))
    _decoded(path.read_bytes(), _Script)


def _within_bounds(value: Any, depth: int = 0, *, longest: int = _LONGEST_DOCUMENT, lowest: float = -_LARGEST) -> None:
    """Checks texts, numbers and depth of any JSON document. Raises ValueError."""
    if depth > _DEEPEST:
        raise ValueError(f"is nested more than {_DEEPEST} levels deep")
    if isinstance(value, dict):
        for name, part in value.items():
            if len(name) > _LONGEST_NAME or not name.isprintable():
                raise ValueError(f"has the name {name[:40]!r}…, which is too long or not printable")
            _within_bounds(part, depth + 1, longest=longest, lowest=lowest)
    elif isinstance(value, list):
        for part in value:
            _within_bounds(part, depth + 1, longest=longest, lowest=lowest)
    elif isinstance(value, str):
        if len(value) > longest or (
            not value.isprintable() and any(ord(one) < 32 and one not in "\n\t" for one in value)
        ):
            raise ValueError(f"has the text {value[:40]!r}…, which is too long or not printable")
    elif isinstance(value, int | float) and not lowest <= value <= _LARGEST:
        raise ValueError(f"has the number {value!r:.40}, which is out of range")


def _lab(path: Path) -> None:
    """Checks that plan, stages and peak of a lab are consistent with each other. Raises ValueError."""
    kinds = {PLAN: FrozenPlan, PEAK: BaselinePeak, BEST: dict[Name, ChosenLoad], CONFIRMATION: Confirmation}
    kinds |= {stage.name: DeclaredStage for stage in path.parent.glob("stage-*.json")}
    for name, kind in sorted(kinds.items()):
        if (file := path.parent / name).exists():
            _within_bounds(_decoded(file.read_bytes(), Any))
            _decoded(file.read_bytes(), kind)
    directory = LabDirectory(path.parent)
    document(directory.source(), directory.path.name, "do not trust this file")
    # The first is the lab as it was planned, and the second includes changes by the stages that have started.
    for lab in (directory.frozen().lab, directory.lab()):
        _check_references(lab)


def _check_references(lab: Lab) -> None:
    """Checks that every name in a lab refers to something that exists. Raises ValueError."""
    _distinct("configurations", [setup.cell.name for setup in lab.all_setups])
    _distinct("factors", [factor.name for factor in lab.factors])
    measured = {setup.cell.name for setup in lab.measurable}
    rated = {setup.cell.name for setup in lab.rated}
    # A claim may name a skipped configuration. Such a claim stays undecided.
    known = {setup.cell.name for setup in lab.all_setups}
    named = {
        "the baseline": ([lab.baseline], {setup.cell.name for setup in lab.setups}),
        "a comparison": ([cell for pair in lab.comparisons for cell in pair], measured),
        "a comparison at a rate": ([cell for pair in lab.rated_comparisons for cell in pair], rated),
        "a claim": ([cell for claim in lab.claims for cell in claim.cells], known),
        "a trial": ([trial.cell.name for trial in lab.trials], measured | rated),
        "a fixed-rate configuration": ([setup.of for setup in lab.rated], measured),
    }
    for what, (names, there) in named.items():
        if unknown := next((name for name in names if name not in there), None):
            raise ValueError(f"{what} names the configuration {unknown!r}, which is not in the lab")
    levels = {factor.name: factor.levels for factor in lab.all_factors}
    for setup in lab.all_setups:
        for factor, level in setup.cell.levels.items():
            if level not in levels.get(factor, ()):
                raise ValueError(f"{setup.cell.name!r} has {factor}={level}, which is not a value in the lab")
    if [stage.number for stage in lab.method.stages] != list(range(1, len(lab.method.stages) + 1)):
        raise ValueError("the stages are not numbered consecutively")
    if any(trial.stage > len(lab.method.stages) for trial in lab.trials):
        raise ValueError("a trial belongs to a stage that the lab does not have")


def _distinct(what: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise ValueError(f"two of the {what} have the same name")
