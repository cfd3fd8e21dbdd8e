"""The immutable result of a trial."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from ironbench.model.commands import CommandRun
from ironbench.model.constraints import (
    Amount,
    BlockNumber,
    Count,
    Digest,
    Key,
    Label,
    Name,
    Natural,
    Share,
    StageNumber,
    one_of,
)
from ironbench.model.described import Described
from ironbench.model.note import Note
from ironbench.model.search import Limit
from ironbench.model.system import Cell, Choice, System

SCHEMA = 5
"""2: a choice contains digests of its scripts. 3: a record contains digests of its files. 4: warnings are notes, and a
flagged record has no cause besides them. 5: causes are notes, and how a trial was measured is in fields of their own
instead of among the conditions. Older records stay readable (`record.decoded`)."""
NOTES_SINCE = 4
"""The schema that has notes; the warnings of older records are sentences."""
CAUSES_SINCE = 5
"""The schema whose causes are notes."""


FAILED_SUSPECT = 0.001
FAILED_VOIDED = 0.05
"""Share of the transactions that failed, of all or of one script, above which a trial is suspect and void."""
FAILED_LIMITS = (FAILED_SUSPECT, FAILED_VOIDED)
RATE_NOT_KEPT = "rate-not-kept"
"""Code of the warning of an open-loop trial that did not keep its rate."""
CAN_LOSE_DATA = "can-lose-data"
"""Code of the warning of a trial whose server had a setting at which confirmed data can be lost."""
EMULATED = "emulated"
"""Code of the warning of a trial on an emulated device."""
CLIENTS_CUT_OFF = "clients-cut-off"
"""Code of the warning of a trial at whose end clients had waited for long."""
CLIENTS_LOST = "clients-lost"
"""Code of the warning of a trial in which clients ended because they lost their connection."""
STOPPED_ON_LOSS = "stopped-on-loss"
"""Code of the warning of a trial that a lost connection ended."""
CONNECTIONS_LOST = "connections-lost"
"""Code of the warning of a trial in which clients lost their connection, and no client ended before the others."""
LOOP_DELAYED = "loop-delayed"
"""Code of the warning of a trial whose response times the drive loop itself made longer."""
ENGINE_DIED = "engine-died"
"""Code of the cause of a trial whose engine ended."""
NOT_BACK = "not-back"
"""Code of the cause of a trial whose database did not survive its power cut."""
NOT_WHOLE = "block-not-whole"
"""Code of the cause of a record whose system did not fail, but another one of its block by slices."""
TRIALS, SLICES, DUET = "trials", "slices", "duet"
"""Methods of measuring: one trial after another; in short turns with the other systems of the block; at the same time
as the other system, a method of an earlier version."""
SYSTEMS = "slice_systems"
"""Metric: how many systems took turns."""
SUSPICIOUS = frozenset(
    {
        *("transactions-failed", "failed-outside-window", "client-saturated", "cpu-taken", "own-cpu-share"),
        *("short-of-two-checkpoints", RATE_NOT_KEPT, CLIENTS_CUT_OFF, CLIENTS_LOST),
        *(LOOP_DELAYED, "not-undone"),
        *("mix-missed", "response-limit-missed", "no-steady-state", "market-gave-up", "no-score"),
    }
)
"""Codes of the warnings that make a trial suspect."""


class Status(StrEnum):
    OK = "ok"
    SUSPECT = "suspect"
    VOIDED = "voided"
    FAILED = "failed"
    CUT_SHORT = "cut-short"

    @property
    def comparable(self) -> bool:
        """Whether trials of this status may enter a comparison."""
        return self in (Status.OK, Status.SUSPECT)


@dataclass(frozen=True, slots=True)
class Check:
    """One rule the workload held its results against."""

    name: str
    passed: bool
    expected: str = ""
    actual: str = ""


@dataclass(frozen=True, slots=True)
class Budget:
    """Where the machine's CPU time went during the measured window: shares of all cores, summing to 1."""

    server: Share = 0.0
    client: Share = 0.0
    observers: Share = 0.0
    emulation: Share = 0.0
    other: Share = 0.0
    """Programs that neither the engine nor ironbench started; records without `kernel` have it in here."""
    steal: Share = 0.0
    """Taken by other virtual machines on the host."""
    idle: Share = 1.0
    kernel: Share = 0.0
    """The kernel's own threads and interrupts, and what else nobody's clock counted."""

    @property
    def measured(self) -> bool:
        """Whether it was; else all counts as idle."""
        return self.idle < 1.0

    @property
    def taken(self) -> float:
        """What did not belong to the work: other programs and other virtual machines."""
        return self.other + self.steal


@dataclass(frozen=True, slots=True)
class Statement:
    """How long the answers to one SQL command of a script took, from sending it, inside the window."""

    script: str
    line: Natural
    """From 1, as the number of the command."""
    command: Natural
    text: str
    """As written, on one line, its beginning."""
    count: Natural
    failed: Natural
    """Answers that were an error."""
    mean_s: Amount
    stdev_s: Amount
    """Standard deviation."""
    p50_s: Amount | None = None
    """Median. None: too few answers for this percentile, or a record of before."""
    p95_s: Amount | None = None
    p99_s: Amount | None = None

    @property
    def histogram(self) -> str:
        """Name of the histogram of its times, in the evidence of the record."""
        return ANSWERS.format(self.script, self.command)


ANSWERS = "answer_time{{statement={}:{}}}"
PERCENTILES = {"p50_s": 0.50, "p95_s": 0.95, "p99_s": 0.99}
"""Field of a statement → share of the answers that were faster."""


@dataclass(frozen=True, slots=True)
class Record:
    """Everything needed to judge one trial. Written once, never edited; at most 16 KB as JSON."""

    id: Name
    series: Name
    """All trials of one `run` share a series."""
    system: System
    choice: Choice
    cell: Cell
    block: BlockNumber
    purpose: Name
    """A `Purpose`; a record of another version may have one that this one lacks."""
    started_at: Annotated[str, Meta(pattern=r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", max_length=40)]
    """UTC, ISO 8601, seconds."""
    elapsed_s: Annotated[float, Meta(ge=0, le=1e10)]
    """Length of the measured window."""
    status: Status
    metrics: dict[str, float]
    """By catalogue name, base units; `name{script=x}` for parts."""
    checks: tuple[Check, ...] = ()
    warnings: tuple[Note, ...] = ()
    causes: tuple[Note, ...] = ()
    """Why the trial is invalid, failed or aborted. Empty for a flagged one, whose notes say why (`flags`), except in
    records before schema 4."""
    budget: Budget = Budget()
    machine: Key = ""
    """Content key of the machine's fingerprint in the store."""
    server_machine: Key = ""
    """Content key of the fingerprint of a running server's machine (`--dsn`), where that was watched or is `machine`;
    empty for other engines, and where it is unknown. Read it by `machine_of`."""
    engine: Key = ""
    """Content key of the engine's facts (version, settings, configure flags) in the store."""
    scripts: dict[str, Key] = field(default_factory=dict)
    """Name of each script that was driven → content key of its text in the store."""
    software: dict[str, str] = field(default_factory=dict)
    """ironbench's version, build profile, Python and package versions."""
    stage: StageNumber = 1
    attempt: StageNumber = 1
    conditions: dict[str, str] = field(default_factory=dict)
    """What was done and verified before the trial, for readers only: data restored from, cache state, quiet."""
    method: Annotated[str, one_of("trials", "slices", "duet")] = TRIALS
    """How it was measured: `TRIALS`, `SLICES` or `DUET`."""
    turns_since: Label = ""
    """When the systems of its block began to take turns, ISO 8601: equal for those that did so with each other. Empty
    if measured by trials."""
    seed_given: bool = False
    """Whether the user chose the seed."""
    search_range: tuple[Count, Count] | None = None
    """Lowest and highest load (clients, or rate) of the search that the trial belongs to; None without a search."""
    limits: tuple[Limit, ...] = ()
    """Limits under which that search looks for the best load."""
    search_result: Note | None = None
    """The result of the search that chose the trial's load."""
    crash: Annotated[str, one_of("", "lose", "subset", "torn")] = ""
    """What a power cut after the trial was to do with unflushed writes: `lose`, `subset`, `torn`."""
    power_cut: bool = False
    """The power was cut after the trial, and the engine was back afterwards."""
    answers: Note | None = None
    """How the answers of the workload's queries were checked."""
    files: dict[str, Digest] = field(default_factory=dict)
    """Each other file of the record → SHA-256 of its content; empty in records before schema 3."""
    commands: tuple[CommandRun, ...] = ()
    """Of the user, that ended since the record before, in order: what was undone after it, and done for this trial."""
    statements: tuple[Statement, ...] = ()
    """Only with `--report-per-statement`."""
    tags: dict[str, str] = field(default_factory=dict)
    """What the user noted of all trials of the run or lab, e.g. `commit` → `1f3c2a9`."""
    described: Described | None = None
    """Facts about workload and engine. None in records of before; read it by `records.described.described`."""
    schema: Count = SCHEMA

    def warned(self, code: str) -> bool:
        """Whether a warning of this code is on it."""
        return any(warning.code == code for warning in self.warnings)

    @property
    def flags(self) -> tuple[Note, ...]:
        """The notes that flag the trial."""
        return tuple(one for one in self.warnings if one.code in SUSPICIOUS)

    @property
    def kept_rate(self) -> bool | None:
        """Whether an open loop kept its rate; None for a closed loop."""
        if self.cell.load.rate is None and self.cell.load.rate_share is None:
            return None
        return not self.warned(RATE_NOT_KEPT)

    @property
    def scheduled_throughput(self) -> float:
        """Transactions per second of clients that a rate would move, in the measured window."""
        return self.metrics.get("scheduled_throughput", self.metrics["throughput"])


def machine_of(record: Record) -> str:
    """Returns the content key of the machine that did the work: the server's. Empty: unknown.

    A running server (`--dsn`) may be on any machine. It is known where `--server` watched it, or where its processes
    were seen on the client's machine; records without `server_machine` show the latter by the CPU that they used.
    """
    if record.server_machine:
        return record.server_machine
    seen_here = record.system.dsn is None or "engine_cpu_cores" in record.metrics
    return record.machine if seen_here else ""


def machines_of(record: Record) -> tuple[str, str]:
    """Returns the keys of the machine that did the work and of the one that drove it: a result depends on both."""
    return machine_of(record), record.machine
