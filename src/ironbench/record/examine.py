"""Checks imported files like user input: types, ranges, names, and references.

Limits lie far beyond anything measured, and spare whatever reads records to think of clients below zero, of names as
long as a book or of numbers whose squares are infinite.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, Struct

from ironbench.model.lab import Lab
from ironbench.model.machine import Machine
from ironbench.model.record import SCHEMA, Record
from ironbench.record import evidence, parquet
from ironbench.record.labs import BEST, PEAK, PLAN, LabDirectory
from ironbench.words import grouped

T = TypeVar("T")

_LONGEST = 1 << 12
"""Characters of any text; of a name a tenth."""
_LARGEST = 1e18
"""Of any number: nanoseconds of thirty years, a million times the bytes of a large disk."""
_MOST_VALUES = 30_000_000
"""In one Parquet file: a hundred quantities a second for three days."""
_MOST_NAMES = 2_000
"""Quantities in one file."""
_DEEPEST = 20

_NAME = r"\A[^\x00-\x1f\x7f-\x9f]*\Z"
"""Nothing that moves a cursor or ends a line."""
Name = Annotated[str, Meta(min_length=1, max_length=400, pattern=_NAME)]
Label = Annotated[str, Meta(max_length=400, pattern=_NAME)]
Key = Annotated[str, Meta(pattern=r"\A[0-9a-z]{0,64}\Z")]
"""Names a shared file: it leads nowhere else."""
Text = Annotated[str, Meta(max_length=_LONGEST)]
Natural = Annotated[int, Meta(ge=0, le=1 << 62)]
Count = Annotated[int, Meta(ge=1, le=10_000_000)]
Amount = Annotated[float, Meta(ge=0, le=_LARGEST)]
Positive = Annotated[float, Meta(ge=1e-9, le=_LARGEST)]
Number = Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)]
Share = Annotated[float, Meta(ge=0, le=1.01)]


class _Load(Struct):
    clients: Count = 1
    threads: Natural = 1
    rate: Positive | None = None
    rate_share: Positive | None = None
    arrivals: Literal["poisson", "fixed"] = "poisson"
    think_time_s: Amount = 0.0
    duration_s: Positive | None = 30.0
    transactions: Count | None = None
    warmup_s: Amount = 0.0
    max_tries: Natural = 1
    protocol: Name = "prepared"
    seed: Natural = 0
    cache: Label = ""
    checkpoint_s: Positive | None = None


class _Cell(Struct):
    name: Name
    load: _Load
    levels: dict[Name, Label] = {}


class _Device(Struct):
    model: Name
    depth: Count = 1


class _Layout(Struct):
    data: Label | None = None
    temp: Label | None = None
    log: Label | None = None
    devices: tuple[_Device, ...] = ()


class _System(Struct):
    engine: Name
    label: Name
    settings: dict[Name, Text] = {}
    layout: _Layout = msgspec.field(default_factory=_Layout)
    memory_bytes: Natural | None = None
    server_cpus: tuple[Annotated[int, Meta(ge=0, le=100_000)], ...] | None = None
    client_cpus: tuple[Annotated[int, Meta(ge=0, le=100_000)], ...] | None = None
    memory_total_bytes: Natural | None = None
    parallelism: Natural | None = None
    ideal: tuple[Name, ...] = ()
    dsn: Text | None = None
    reference_score: Positive | None = None


class _Choice(Struct):
    workload: Name
    options: dict[Name, Text] = {}
    defines: dict[Name, Text] = {}
    scripts: tuple[Text, ...] = ()
    digests: tuple[Text, ...] = ()


class _Note(Struct):
    """A check or a warning."""

    name: Label = ""
    code: Label = ""
    text: Text = ""
    expected: Text = ""
    actual: Text = ""


class _Budget(Struct):
    server: Share = 0.0
    client: Share = 0.0
    observers: Share = 0.0
    emulation: Share = 0.0
    other: Share = 0.0
    steal: Share = 0.0
    idle: Share = 1.0


class _Record(Struct):
    """The ranges of a record; its types are `Record`'s."""

    schema: Annotated[int, Meta(ge=1, le=SCHEMA)]
    id: Name
    series: Name
    system: _System
    choice: _Choice
    cell: _Cell
    block: Annotated[int, Meta(ge=0, le=10_000_000)]
    purpose: Name
    started_at: Annotated[str, Meta(pattern=r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", max_length=40)]
    elapsed_s: Annotated[float, Meta(ge=0, le=1e10)]
    metrics: dict[Name, Number]
    checks: tuple[_Note, ...] = ()
    warnings: tuple[_Note, ...] = ()
    cause: Text = ""
    budget: _Budget = msgspec.field(default_factory=_Budget)
    machine: Key = ""
    engine: Key = ""
    software: dict[Name, Label] = {}
    stage: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    attempt: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    conditions: dict[Name, Text] = {}
    scripts: dict[Name, Key] = {}
    files: dict[Name, Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]] = {}


class _Engine(Struct):
    version: Label = ""
    settings: dict[Name, Text | None] = {}


class _Script(Struct):
    text: Annotated[str, Meta(max_length=1 << 20)]


class _Limit(Struct):
    metric: Name
    most: Positive


class _Search(Struct):
    of: Literal["clients", "rate"]
    low: Annotated[int, Meta(ge=1, le=1 << 60)]
    high: Annotated[int, Meta(ge=1, le=1 << 60)]
    limits: tuple[_Limit, ...] = ()
    expected: Natural = 0


class _Setup(Struct):
    cell: _Cell
    system: _System
    choice: _Choice
    skipped: Text = ""
    of: Label = ""
    search: _Search | None = None


class _Trial(Struct):
    cell: _Cell
    block: Annotated[int, Meta(ge=0, le=10_000_000)]
    purpose: Name = "sweep"
    stage: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    attempt: Annotated[int, Meta(ge=1, le=1_000_000)] = 1


class _Stage(Struct):
    number: Annotated[int, Meta(ge=1, le=1_000_000)]
    blocks: Annotated[int, Meta(ge=1, le=10_000_000)]


class _Factor(Struct):
    name: Name
    levels: Annotated[tuple[Name, ...], Meta(min_length=1)]


class _Claim(Struct):
    text: Text
    kind: Literal["ratio", "order"]
    metric: Name
    cells: Annotated[tuple[Name, ...], Meta(min_length=2)]
    low: Number | None = None
    high: Number | None = None


class _Method(Struct):
    stages: Annotated[tuple[_Stage, ...], Meta(min_length=1)]
    seed: Natural
    margin: Annotated[float, Meta(gt=0, le=100)] = 0.05
    metric: Name = "throughput"
    restore: Literal["auto", "trial", "block"] = "auto"
    quiet_s: Amount = 30.0
    budget_s: Amount | None = None
    budget_for_rates_s: Amount | None = None
    order: Literal["random", "fixed"] = "random"
    dropped: tuple[Annotated[int, Meta(ge=0, le=10_000_000)], ...] = ()


class _Lab(Struct):
    name: Label
    series: Label
    question: Text
    factors: tuple[_Factor, ...]
    design: Literal["one-at-a-time", "full", "explicit"]
    setups: Annotated[tuple[_Setup, ...], Meta(min_length=1)]
    baseline: Name
    comparisons: tuple[tuple[Name, Name], ...]
    method: _Method
    claims: tuple[_Claim, ...]
    trials: Annotated[tuple[_Trial, ...], Meta(min_length=1)]
    estimate_s: Amount = 0.0
    estimate_bytes: Natural = 0
    rated: tuple[_Setup, ...] = ()
    rated_comparisons: tuple[tuple[Name, Name], ...] = ()


class _Frozen(Struct):
    """The ranges of a lab's plan; its types are `Frozen`'s."""

    lab: _Lab
    machine: Key
    engines: dict[Name, dict[Name, Text]]
    software: dict[Name, Text]
    schema: Annotated[int, Meta(ge=1)] = 1


class _Declared(Struct):
    stage: _Stage
    trials: tuple[_Trial, ...]


class _Peak(Struct):
    throughput: Positive
    trials: tuple[Name, ...]


class _Tried(Struct):
    point: Annotated[int, Meta(ge=1, le=1 << 60)]
    trials: Natural
    throughput: Amount
    limited: tuple[Number, ...] = ()


class _Best(Struct):
    point: Annotated[int, Meta(ge=1, le=1 << 60)] | None
    sentence: Text
    tried: tuple[_Tried, ...]
    trials: tuple[Name, ...]


def record(data: bytes) -> Record:
    """The record in a document. ValueError: what is wrong with it."""
    _held(data, _Record)
    return _held(data, Record)


def unpacked(directory: Path, records: Sequence[Record]) -> None:
    """Checks all other files of a store that a parcel was unpacked to. ValueError: the file, and its fault."""
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


def _held(data: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _file(path: Path, one: Record, name: str) -> None:
    if name in one.files and evidence.digest_of(path) != one.files[name]:
        raise ValueError("has another content than the record says")
    if name.endswith(".parquet") and parquet.values(path) > _MOST_VALUES:
        raise ValueError(f"holds more than {grouped(_MOST_VALUES)} values")
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
        raise ValueError(f"holds more than {_MOST_NAMES} quantities")
    msgspec.convert(listed, list[Name])


def _numbers(name: str, values: np.ndarray[Any, np.dtype[np.float64]]) -> None:
    known = values if name == "t_s" else values[~np.isnan(values)]
    if known.size and not np.abs(known).max() <= _LARGEST:  # NaN is not, either
        raise ValueError(f"{name} has values beyond what can be")


def _machine(path: Path) -> None:
    _within_bounds(_held(path.read_bytes(), Any), 0)
    _held(path.read_bytes(), Machine)


def _engine(path: Path) -> None:
    _within_bounds(_held(path.read_bytes(), Any), 0)
    _held(path.read_bytes(), _Engine)


def _script(path: Path) -> None:
    _held(path.read_bytes(), _Script)


def _within_bounds(value: Any, depth: int) -> None:
    """Texts, numbers and depth of a document of any shape. ValueError."""
    if depth > _DEEPEST:
        raise ValueError(f"is nested more than {_DEEPEST} deep")
    if isinstance(value, dict):
        for name, part in value.items():
            _within_bounds(name, depth)
            _within_bounds(part, depth + 1)
    elif isinstance(value, list):
        for part in value:
            _within_bounds(part, depth + 1)
    elif isinstance(value, str):
        if len(value) > _LONGEST or (
            not value.isprintable() and any(ord(one) < 32 and one not in "\n\t" for one in value)
        ):
            raise ValueError(f"has the text {value[:40]!r}…, which is too long or not printable")
    elif isinstance(value, int | float) and not -1 <= value <= _LARGEST:
        raise ValueError(f"has the number {value!r:.40}, which is beyond what can be")


def _lab(path: Path) -> None:
    """The plan, stages and peak of a lab hold together."""
    directory = LabDirectory(path.parent)
    _held(path.read_bytes(), _Frozen)
    for other in sorted(path.parent.glob("stage-*.json")):
        _held(other.read_bytes(), _Declared)
    if (peak := path.parent / PEAK).exists():
        _held(peak.read_bytes(), _Peak)
    if (best := path.parent / BEST).exists():
        _held(best.read_bytes(), dict[Name, _Best])
    tomllib.loads(directory.source())
    for lab in (directory.frozen().lab, directory.lab()):  # as it was planned, and with the stages that have begun
        _holds_together(lab)


def _holds_together(lab: Lab) -> None:
    """What a lab names is there. ValueError."""
    _distinct("cells", [setup.cell.name for setup in lab.all_setups])
    _distinct("factors", [factor.name for factor in lab.factors])
    measured = {setup.cell.name for setup in lab.setups if not setup.skipped}
    rated = {setup.cell.name for setup in lab.rated}
    known = {setup.cell.name for setup in lab.all_setups}  # a claim about a skipped cell stays undecided
    named = {
        "the baseline": ([lab.baseline], {setup.cell.name for setup in lab.setups}),
        "a comparison": ([cell for pair in lab.comparisons for cell in pair], measured),
        "a comparison at a rate": ([cell for pair in lab.rated_comparisons for cell in pair], rated),
        "a claim": ([cell for claim in lab.claims for cell in claim.cells], known),
        "a trial": ([trial.cell.name for trial in lab.trials], measured | rated),
        "a rated cell": ([setup.of for setup in lab.rated], measured),
    }
    for what, (names, there) in named.items():
        if unknown := next((name for name in names if name not in there), None):
            raise ValueError(f"{what} names the cell {unknown!r}, which is none of the lab's")
    levels = {factor.name: factor.levels for factor in lab.factors}
    for setup in lab.all_setups:
        for factor, level in setup.cell.levels.items():
            if level not in levels.get(factor, ()):
                raise ValueError(f"the cell {setup.cell.name!r} is at {factor}={level}, which is no level of the lab's")
    if [stage.number for stage in lab.method.stages] != list(range(1, len(lab.method.stages) + 1)):
        raise ValueError("its stages are not numbered one after the other")
    if any(trial.stage > len(lab.method.stages) for trial in lab.trials):
        raise ValueError("a trial is of a stage that the lab has not")


def _distinct(what: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise ValueError(f"two of its {what} have one name")
