"""What a record and a lab look like in a file from elsewhere: types, ranges and names.

Each struct has the fields of the dataclass of its name: where a field is missing here, only its type is checked.

Limits lie far beyond anything measured, and spare whatever reads records to think of clients below zero, of names as
long as a book or of numbers whose squares are infinite.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from ironbench.fields.lab import range_of
from ironbench.model.commands import LIMIT_S
from ironbench.model.purpose import Purpose
from ironbench.model.record import SCHEMA, Status

LONGEST = 1 << 12
"""Characters of any text; of a name a tenth."""
LARGEST = 1e18
"""Of any number: nanoseconds of thirty years, a million times the bytes of a large disk."""

_NAME = r"\A[^\x00-\x1f\x7f-\x9f]*\Z"
"""Nothing that moves a cursor or ends a line."""
Name = Annotated[str, Meta(min_length=1, max_length=400, pattern=_NAME)]
Label = Annotated[str, Meta(max_length=400, pattern=_NAME)]
Key = Annotated[str, Meta(pattern=r"\A[0-9a-z]{0,64}\Z")]
"""Names a shared file: it leads nowhere else."""
Query = Annotated[str, Meta(max_length=400, pattern=r"\A[^\x00-\x08\x0b-\x1f\x7f-\x9f]*\Z")]
"""A name that may hold SQL of the user's, in several lines."""
Text = Annotated[str, Meta(max_length=LONGEST)]
Document = Annotated[str, Meta(max_length=1 << 20)]
"""A file's content, or a command of a shell."""
Natural = Annotated[int, Meta(ge=0, le=1 << 62)]
Seed = Annotated[int, Meta(ge=0, le=range_of("measure.seed").high)]
Count = Annotated[int, Meta(ge=1, le=10_000_000)]
Amount = Annotated[float, Meta(ge=0, le=LARGEST)]
Positive = Annotated[float, Meta(ge=1e-9, le=LARGEST)]
Number = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
Share = Annotated[float, Meta(ge=0, le=1.01)]


class Curve(Struct):
    of: Literal["rate", "clients"]
    text: Text
    points: Annotated[tuple[tuple[Amount, Amount], ...], Meta(max_length=1_000_000)] = ()
    wave: tuple[Amount, Amount, Positive] | None = None


class Load(Struct):
    clients: Count = 1
    threads: Natural = 1
    rate: Positive | None = None
    rate_share: Positive | None = None
    curve: Curve | None = None
    arrivals: Literal["poisson", "fixed"] = "poisson"
    think_time_s: Amount = 0.0
    reconnect: Natural = 0
    duration_s: Positive | None = 30.0
    transactions: Annotated[int, Meta(ge=1, le=range_of("load.transactions").high)] | None = None
    warmup_s: Amount = 0.0
    warmup_auto: bool = False
    max_tries: Natural = 1
    on_error: Literal["continue", "stop"] = "continue"
    reconnect_on_loss: bool = False
    report_per_statement: bool = False
    protocol: Name = "prepared"
    seed: Seed = 0
    io: Literal["auto", "io_uring", "epoll"] = "auto"
    cache: Label = ""
    checkpoint_s: Positive | None = None
    workers: Annotated[int, Meta(ge=0, le=100_000)] = 0
    cluster: Label = ""
    fewer_workers: bool = False


class Cell(Struct):
    name: Name
    load: Load
    levels: dict[Name, Label] = {}


class Partition(Struct):
    role: Name
    bytes: Natural
    directory: Text


class Device(Struct):
    model: Text
    partitions: tuple[Partition, ...]
    file_system: Name = "ext4"
    backing: Text = "ram"
    depth: Count = 1
    rotates: bool = False


class Layout(Struct):
    data: Label | None = None
    temp: Label | None = None
    log: Label | None = None
    devices: tuple[Device, ...] = ()


class Commands(Struct):
    prepare: Document = ""
    cleanup: Document = ""
    limit_s: Positive = LIMIT_S
    of: Text = ""


class System(Struct):
    engine: Name
    label: Name
    settings: dict[Name, Text] = {}
    layout: Layout = msgspec.field(default_factory=Layout)
    memory_bytes: Natural | None = None
    server_cpus: tuple[Annotated[int, Meta(ge=0, le=100_000)], ...] | None = None
    client_cpus: tuple[Annotated[int, Meta(ge=0, le=100_000)], ...] | None = None
    memory_total_bytes: Natural | None = None
    parallelism: Natural | None = None
    ideal: tuple[Name, ...] = ()
    dsn: Text | None = None
    server: Text | None = None
    control: bool = False
    restart: Text = ""
    reference_score: Positive | None = None
    commands: tuple[Commands, ...] = ()


class OwnData(Struct):
    dump: Text = ""
    setup: tuple[Text, ...] = ()
    template: Text = ""
    check: Document = ""
    digests: tuple[Text, ...] = ()
    kind: Text = ""
    tools: Text = ""
    bytes: Natural = 0
    data_bytes: Natural = 0


class Choice(Struct):
    workload: Name
    options: dict[Name, Text] = {}
    defines: dict[Name, Text] = {}
    scripts: tuple[Text, ...] = ()
    digests: tuple[Text, ...] = ()
    data: OwnData | None = None


class Check(Struct):
    name: Query
    passed: bool
    expected: Text = ""
    actual: Text = ""


Value = float | int | Text
"""Of a note: its numbers are any that a measurement may give."""


class Note(Struct):
    """`text`: of records before schema 4."""

    code: Label
    values: dict[Name, Value | tuple[Value | tuple[Value, ...], ...]] = {}
    text: Text = ""


class Budget(Struct):
    server: Share = 0.0
    client: Share = 0.0
    observers: Share = 0.0
    emulation: Share = 0.0
    other: Share = 0.0
    steal: Share = 0.0
    idle: Share = 1.0
    kernel: Share = 0.0


class CommandRun(Struct):
    when: Literal["prepare", "cleanup"]
    of: Text
    command: Text
    status: Annotated[int, Meta(ge=-1000, le=1000)] | None
    took_s: Amount
    cause: Text = ""


class Statement(Struct):
    script: Label
    line: Natural
    command: Natural
    text: Document
    count: Natural
    failed: Natural
    mean_s: Amount
    stdev_s: Amount
    p50_s: Amount | None = None
    p95_s: Amount | None = None
    p99_s: Amount | None = None


class Record(Struct):
    """The ranges of a record; its types are `Record`'s."""

    schema: Annotated[int, Meta(ge=1, le=SCHEMA)]
    id: Name
    series: Name
    system: System
    choice: Choice
    cell: Cell
    block: Annotated[int, Meta(ge=0, le=10_000_000)]
    purpose: Name
    started_at: Annotated[str, Meta(pattern=r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", max_length=40)]
    elapsed_s: Annotated[float, Meta(ge=0, le=1e10)]
    metrics: dict[Name, Number]
    status: Status
    checks: tuple[Check, ...] = ()
    warnings: tuple[Note, ...] = ()
    cause: Text = ""
    """Of records before schema 5."""
    causes: tuple[Note, ...] = ()
    budget: Budget = msgspec.field(default_factory=Budget)
    machine: Key = ""
    server_machine: Key = ""
    engine: Key = ""
    software: dict[Name, Label] = {}
    stage: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    attempt: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    conditions: dict[Name, Text] = {}
    method: Literal["trials", "slices", "duet"] = "trials"
    turns_since: Label = ""
    seed_given: bool = False
    search_range: tuple[Load, Load] | None = None
    limits: tuple[Limit, ...] = ()
    search_result: Note | None = None
    crash: Literal["", "lose", "subset", "torn"] = ""
    power_cut: bool = False
    answers: Note | None = None
    scripts: dict[Name, Key] = {}
    files: dict[Name, Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]] = {}
    commands: tuple[CommandRun, ...] = ()
    statements: tuple[Statement, ...] = ()
    tags: dict[Name, Label] = {}


class Engine(Struct):
    version: Label = ""
    settings: dict[Name, Text | None] = {}


class Script(Struct):
    text: Document


class Limit(Struct):
    metric: Name
    most: Positive


class Search(Struct):
    of: Literal["clients", "rate"]
    low: Annotated[int, Meta(ge=1, le=1 << 60)]
    high: Annotated[int, Meta(ge=1, le=1 << 60)]
    limits: tuple[Limit, ...] = ()
    repeats: Count = 2
    most_repeats: Count = 6
    resolution: Annotated[float, Meta(ge=1, le=1000)] = 1.1
    indifference: Share = 0.02
    expected: Natural = 0


class Tried(Struct):
    point: Annotated[int, Meta(ge=1, le=1 << 60)]
    trials: Natural
    throughput: Amount
    limited: tuple[Number, ...] = ()


class Best(Struct):
    point: Annotated[int, Meta(ge=1, le=1 << 60)] | None
    sentence: Text
    tried: tuple[Tried, ...]
    trials: tuple[Name, ...]
    result: Note | None = None
    failed: bool = False


class Setup(Struct):
    cell: Cell
    system: System
    choice: Choice
    skipped: Text = ""
    of: Label = ""
    search: Search | None = None
    best: Best | None = None


class Trial(Struct):
    cell: Cell
    block: Annotated[int, Meta(ge=0, le=10_000_000)]
    purpose: Purpose = Purpose.SWEEP
    stage: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    attempt: Annotated[int, Meta(ge=1, le=1_000_000)] = 1


class Stage(Struct):
    number: Annotated[int, Meta(ge=1, le=1_000_000)]
    blocks: Annotated[int, Meta(ge=1, le=10_000_000)]
    added: bool = False


class Factor(Struct):
    name: Name
    levels: Annotated[tuple[Name, ...], Meta(min_length=1)]


class Claim(Struct):
    text: Text
    kind: Literal["ratio", "order"]
    metric: Name
    cells: Annotated[tuple[Name, ...], Meta(min_length=2)]
    low: Number | None = None
    high: Number | None = None


class Method(Struct):
    stages: Annotated[tuple[Stage, ...], Meta(min_length=1)]
    seed: Seed
    margin: Annotated[float, Meta(gt=0, le=100)] = 0.05
    metric: Name = "throughput"
    restore: Literal["auto", "trial", "block"] = "auto"
    quiet_s: Amount = 30.0
    budget_s: Amount | None = None
    budget_for_rates_s: Amount | None = None
    order: Literal["random", "fixed"] = "random"
    crash: Literal["", "lose", "subset", "torn"] = ""
    slice_s: Positive | None = None
    slice_piloted: bool = False
    observed: bool = False
    why_trials: Text = ""
    duet: bool = False
    dropped: tuple[Annotated[int, Meta(ge=0, le=10_000_000)], ...] = ()


class Lab(Struct):
    name: Label
    series: Label
    question: Text
    factors: tuple[Factor, ...]
    design: Literal["one-at-a-time", "full", "explicit", "screen"]
    setups: Annotated[tuple[Setup, ...], Meta(min_length=1)]
    baseline: Name
    comparisons: tuple[tuple[Name, Name], ...]
    method: Method
    claims: tuple[Claim, ...]
    trials: Annotated[tuple[Trial, ...], Meta(min_length=1)]
    source: Document
    estimate_s: Amount = 0.0
    estimate_bytes: Natural = 0
    rated: tuple[Setup, ...] = ()
    commands: Commands = msgspec.field(default_factory=Commands)
    block_commands: Commands = msgspec.field(default_factory=Commands)
    folder: Text = ""
    rated_comparisons: tuple[tuple[Name, Name], ...] = ()
    file: Text = ""
    tags: dict[Name, Label] = {}


class Confirmation(Struct):
    setups: tuple[Setup, ...]
    comparisons: tuple[tuple[Name, Name], ...]
    stages: Annotated[tuple[Stage, ...], Meta(min_length=1)]
    trials: Annotated[tuple[Trial, ...], Meta(min_length=1)]
    estimate_s: Amount = 0.0


class Frozen(Struct):
    """The ranges of a lab's plan; its types are `Frozen`'s."""

    lab: Lab
    machine: Key
    engines: dict[Name, dict[Name, Text]]
    software: dict[Name, Text]
    servers: dict[Text, Key] = {}
    gate: bool = False
    schema: Annotated[int, Meta(ge=1)] = 1


class Declared(Struct):
    stage: Stage
    trials: tuple[Trial, ...]
    replaced: tuple[Annotated[int, Meta(ge=0, le=10_000_000)], ...] = ()


class Peak(Struct):
    throughput: Positive
    trials: tuple[Name, ...]
