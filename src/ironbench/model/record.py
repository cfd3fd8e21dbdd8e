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
from ironbench.model.lab import Claim
from ironbench.model.note import Note
from ironbench.model.search import Limit
from ironbench.model.system import Cell, Choice, System

SCHEMA = 5
"""Changes by version: in 2, a choice contains digests of its scripts. In 3, a record contains digests of its files. In
4, warnings are notes, and a flagged record has warnings instead of causes. In 5, causes are notes, and the method of
measurement has its own fields and is not part of the conditions. Older records stay readable (`records.decoded`)."""
NOTES_SINCE = 4
"""The first schema with notes; in older records warnings are sentences."""
CAUSES_SINCE = 5
"""The first schema whose causes are notes."""


FAILED_SUSPECT = 0.001
FAILED_VOIDED = 0.05
"""Fraction of failed transactions, overall or of one script, above which a trial is flagged or invalid."""
FAILED_LIMITS = (FAILED_SUSPECT, FAILED_VOIDED)
RATE_NOT_KEPT = "rate-not-kept"
"""Code of the warning of an open-loop trial that did not sustain its target rate."""
CAN_LOSE_DATA = "can-lose-data"
"""Code of the warning of a trial whose server had a setting that risks the loss of committed data."""
LATENCY_LATE = "latency-late"
"""Code of the warning of a trial in which the relay added more latency than declared."""
RELAY_SATURATED = "relay-saturated"
"""Code of the warning of a trial in which the relay that adds latency may be the bottleneck."""
EMULATED = "emulated"
"""Code of the warning of a trial on an emulated device."""
CLIENTS_CUT_OFF = "clients-cut-off"
"""Code of the warning of a trial at whose end some clients had waited for a long time."""
CLIENTS_LOST = "clients-lost"
"""Code of the warning of a trial in which clients stopped because they lost their connection."""
STOPPED_ON_LOSS = "stopped-on-loss"
"""Code of the warning of a trial that was stopped by a lost connection."""
CONNECTIONS_LOST = "connections-lost"
"""Code of the warning of a trial in which clients lost their connection but none stopped before the others."""
LOOP_DELAYED = "loop-delayed"
"""Code of the warning of a trial whose response times were increased by the drive loop itself."""
EMULATION_LIMIT = "emulation-limit"
"""Code of the warning that emulation was slower than the device's model."""
ENGINE_DIED = "engine-died"
"""Code of the cause of a trial whose engine crashed or ended."""
NOT_BACK = "not-back"
"""Code of the cause of a trial whose database did not survive the power cut."""
NOT_WHOLE = "block-not-whole"
"""Code of the cause of an interleaved trial that is invalid because another system of its block failed."""
TRIALS, SLICES, DUET = "trials", "slices", "duet"
"""Methods of measuring: one trial after another; interleaved in short slices with the other systems of the block; or at
the same time as the other system, which only earlier versions did."""
SYSTEMS = "slice_systems"
"""Metric: number of systems that were interleaved."""
SUSPICIOUS = frozenset(
    {
        *("transactions-failed", "failed-outside-window", "client-saturated", "cpu-taken", "own-cpu-share"),
        *("short-of-two-checkpoints", RATE_NOT_KEPT, CLIENTS_CUT_OFF, CLIENTS_LOST),
        *(LOOP_DELAYED, "not-undone", RELAY_SATURATED),
        *("mix-missed", "response-limit-missed", "no-steady-state", "market-gave-up", "no-score"),
        "replay-unfaithful",
    }
)
"""Codes of the warnings that flag a trial."""


class Status(StrEnum):
    OK = "ok"
    SUSPECT = "suspect"
    VOIDED = "voided"
    FAILED = "failed"
    CUT_SHORT = "cut-short"

    @property
    def comparable(self) -> bool:
        """Whether trials with this status may be compared."""
        return self in (Status.OK, Status.SUSPECT)

    @property
    def word(self) -> str:
        """The name of the status in reports and messages. `value` is its name in records and JSON documents."""
        return _WORDS[self]


_WORDS = {
    Status.OK: "valid",
    Status.SUSPECT: "flagged",
    Status.VOIDED: "invalid",
    Status.FAILED: "failed",
    Status.CUT_SHORT: "aborted",
}


@dataclass(frozen=True, slots=True)
class Check:
    """A rule that the workload checked its results against."""

    name: str
    passed: bool
    expected: str = ""
    actual: str = ""


@dataclass(frozen=True, slots=True)
class Budget:
    """Breakdown of the machine's CPU time in the measured window: fractions of all cores that sum to 1."""

    server: Share = 0.0
    client: Share = 0.0
    observers: Share = 0.0
    emulation: Share = 0.0
    other: Share = 0.0
    """Programs that neither the engine nor ironbench started; records without `kernel` include it here."""
    steal: Share = 0.0
    """Steal time: used by other virtual machines on the host."""
    idle: Share = 1.0
    kernel: Share = 0.0
    """Kernel threads, interrupts, and CPU time that belongs to no process."""
    relay: Share = 0.0
    """The relay that adds latency between clients and server."""

    @property
    def measured(self) -> bool:
        """Whether CPU time was measured; otherwise all of it counts as idle."""
        return self.idle < 1.0

    @property
    def taken(self) -> float:
        """CPU time used by others: other programs and other virtual machines."""
        return self.other + self.steal


@dataclass(frozen=True, slots=True)
class Statement:
    """Response times of one SQL command of a script inside the window, from sending the command to its answer."""

    script: str
    line: Natural
    """Line of the command in the script, 1-based."""
    command: Natural
    text: str
    """The beginning of the command as written, on one line."""
    count: Natural
    failed: Natural
    """Answers that were errors."""
    mean_s: Amount
    stdev_s: Amount
    """Standard deviation."""
    p50_s: Amount | None = None
    """Median; None: too few answers for this percentile, or a record of an earlier version."""
    p95_s: Amount | None = None
    p99_s: Amount | None = None

    @property
    def histogram(self) -> str:
        """Name of the histogram of its response times in the evidence of the record."""
        return ANSWERS.format(self.script, self.command)


ANSWERS = "answer_time{{statement={}:{}}}"
PERCENTILES = {"p50_s": 0.50, "p95_s": 0.95, "p99_s": 0.99}
"""Field of a statement → quantile."""


@dataclass(frozen=True, slots=True)
class Record:
    """The complete result of a trial, sufficient to judge it. Written once and never changed; at most 16 KB as JSON."""

    id: Name
    series: Name
    """Name shared by all trials of one `run`."""
    system: System
    choice: Choice
    cell: Cell
    block: BlockNumber
    purpose: Name
    """A `Purpose`; a record of another version may have a purpose that this version does not know."""
    started_at: Annotated[str, Meta(pattern=r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", max_length=40)]
    """UTC, ISO 8601, seconds."""
    elapsed_s: Annotated[float, Meta(ge=0, le=1e10)]
    """Length of the measured window."""
    status: Status
    metrics: dict[str, float]
    """Metrics by catalogue name, in base units; parts have labels: `name{script=x}`."""
    checks: tuple[Check, ...] = ()
    warnings: tuple[Note, ...] = ()
    causes: tuple[Note, ...] = ()
    """Why the trial is invalid, failed or aborted. Empty for a flagged trial, whose notes contain the reason (`flags`),
    except in records before schema 4."""
    budget: Budget = Budget()
    machine: Key = ""
    """Content key of the machine's fingerprint in the store."""
    server_machine: Key = ""
    """For a running server (`--dsn`): content key of its machine's fingerprint, if that machine was observed or is
    `machine`. Otherwise empty. Read it with `machine_of`."""
    engine: Key = ""
    """Content key of the engine's facts (version, settings, configure flags) in the store."""
    scripts: dict[str, Key] = field(default_factory=dict)
    """Name of each script that was run → content key of its text in the store."""
    software: dict[str, str] = field(default_factory=dict)
    """ironbench's version, build profile, Python and package versions."""
    stage: StageNumber = 1
    attempt: StageNumber = 1
    conditions: dict[str, str] = field(default_factory=dict)
    """Conditions established and verified before the trial, as information: restored data, caches, idle machine."""
    method: Annotated[str, one_of("trials", "slices", "duet")] = TRIALS
    """Method of measurement: `TRIALS`, `SLICES` or `DUET`."""
    turns_since: Label = ""
    """Time at which interleaving of the block's systems started, ISO 8601. Equal for systems that were interleaved with
    each other; empty for whole trials."""
    seed_given: bool = False
    """Whether the user chose the seed."""
    search_range: tuple[Count, Count] | None = None
    """Lowest and highest load (clients, or rate) of the search that the trial is part of; None without a search."""
    limits: tuple[Limit, ...] = ()
    """Constraints under which the search looks for the best load."""
    requirements: tuple[Claim, ...] = ()
    """Requirements that the run declared (`--require`)."""
    search_result: Note | None = None
    """The result of the search that chose the trial's load."""
    crash: Annotated[str, one_of("", "lose", "subset", "torn")] = ""
    """Fate of unflushed writes at a power cut after the trial: `lose`, `subset`, `torn`."""
    power_cut: bool = False
    """Whether the power was cut after the trial and the engine recovered."""
    answers: Note | None = None
    """How the answers of the workload's queries were checked."""
    files: dict[str, Digest] = field(default_factory=dict)
    """Name of each other file of the record → SHA-256 of its content; empty in records before schema 3."""
    commands: tuple[CommandRun, ...] = ()
    """The user's commands that ended since the previous record, in order: cleanup of the previous trial and preparation
    of this one."""
    statements: tuple[Statement, ...] = ()
    """Times of SQL commands; empty without `--report-per-statement`."""
    tags: dict[str, str] = field(default_factory=dict)
    """The user's tags for all trials of the run or lab, such as `commit` → `1f3c2a9`."""
    described: Described | None = None
    """Facts about workload and engine; None in records of earlier versions. Use `records.described.described` to read
    it."""
    schema: Count = SCHEMA

    def warned(self, code: str) -> bool:
        """Whether the record has a warning with this code."""
        return any(warning.code == code for warning in self.warnings)

    @property
    def flags(self) -> tuple[Note, ...]:
        """The notes that flag the trial."""
        return tuple(one for one in self.warnings if one.code in SUSPICIOUS)

    @property
    def kept_rate(self) -> bool | None:
        """Whether an open-loop trial sustained its target rate; None for a closed loop."""
        if self.cell.load.rate is None and self.cell.load.rate_share is None:
            return None
        return not self.warned(RATE_NOT_KEPT)

    @property
    def scheduled_throughput(self) -> float:
        """Transactions per second in the measured window, of the clients to which a target rate applies."""
        return self.metrics.get("scheduled_throughput", self.metrics["throughput"])


def machine_of(record: Record) -> str:
    """Returns the content key of the server's machine, which did the work; empty if unknown.

    A running server (`--dsn`) may be on any machine. The machine is known if `--server` observed it, or if its
    processes were visible on the client's machine. In records without `server_machine`, CPU time of the engine shows
    that the processes were visible.
    """
    if record.server_machine:
        return record.server_machine
    seen_here = record.system.dsn is None or "engine_cpu_cores" in record.metrics
    return record.machine if seen_here else ""


def machines_of(record: Record) -> tuple[str, str]:
    """Returns the keys of the server's machine and the client's machine; a result depends on both."""
    return machine_of(record), record.machine
