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
from ironbench.model.profile_request import ProfileRequest
from ironbench.model.search import Limit
from ironbench.model.system import Cell, Choice, System

SCHEMA = 5
"""Version of the record format. Version 2 added digests of scripts to `Choice`, and version 3 added digests of files to
records. Since version 4, warnings are notes, and a flagged record has warnings instead of causes. Since version 5,
causes are notes, and the method of measurement is stored in separate fields instead of the conditions. Older records
stay readable (`records.decoded`)."""
NOTES_SINCE = 4
"""The first schema in which warnings are notes. In older records, warnings are sentences."""
CAUSES_SINCE = 5
"""The first schema in which causes are notes. In older records, causes are sentences."""


RATE_NOT_KEPT = "rate-not-kept"
"""Code of the warning that an open-loop trial did not sustain its target rate."""
CAN_LOSE_DATA = "can-lose-data"
"""Code of the warning that the server had a setting that risks the loss of committed data."""
LATENCY_LATE = "latency-late"
"""Code of the warning that the relay added more latency than declared."""
RELAY_SATURATED = "relay-saturated"
"""Code of the warning that the relay that adds latency may be the bottleneck."""
EMULATED = "emulated"
"""Code of the warning that the trial ran on an emulated device."""
CLIENTS_CUT_OFF = "clients-cut-off"
"""Code of the warning that some clients had already waited for a long time when the trial ended."""
CLIENTS_UNEVEN = "clients-uneven"
"""Code of the warning that some clients completed far more transactions than others."""
CLIENTS_LOST = "clients-lost"
"""Code of the warning that clients stopped because they lost their connection."""
STOPPED_ON_LOSS = "stopped-on-loss"
"""Code of the warning that a lost connection stopped the trial."""
CONNECTIONS_LOST = "connections-lost"
"""Code of the warning that clients lost their connection, but all clients continued to the end."""
LOOP_DELAYED = "loop-delayed"
"""Code of the warning that the drive loop itself increased the response times."""
EMULATION_LIMIT = "emulation-limit"
"""Code of the warning that emulation was slower than the device's model."""
ENGINE_DIED = "engine-died"
"""Code of the cause that the engine crashed or ended during the trial."""
NOT_BACK = "not-back"
"""Code of the cause that the database did not survive the power cut."""
NOT_WHOLE = "block-not-whole"
"""Code of the cause that another system of the same block failed. An interleaved trial is then invalid."""
TRIALS, SLICES, DUET = "trials", "slices", "duet"
"""Methods of measurement. `TRIALS`: one trial runs after another. `SLICES`: the systems of a block are interleaved in
short slices. `DUET`, only in earlier versions: two systems run at the same time."""
SYSTEMS = "slice_systems"
"""Name of the metric with the number of interleaved systems."""
SUSPICIOUS = frozenset(
    {
        *("transactions-failed", "failed-outside-window", "client-saturated", "cpu-taken", "own-cpu-share"),
        *("short-of-two-checkpoints", RATE_NOT_KEPT, CLIENTS_CUT_OFF, CLIENTS_LOST),
        *(LOOP_DELAYED, "not-undone", RELAY_SATURATED),
        *("mix-missed", "response-limit-missed", "no-steady-state", "market-gave-up", "no-score"),
        *("replay-unfaithful", "replay-late"),
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
        """The status's name in reports and messages. `value` is the status's name in records and JSON documents."""
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
    """A check of the workload's results, and whether it passed."""

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
    """CPU time of programs that neither the engine nor ironbench started. In records without `kernel`, it includes
    `kernel`."""
    steal: Share = 0.0
    """Steal time: CPU time used by other virtual machines on the host."""
    idle: Share = 1.0
    kernel: Share = 0.0
    """CPU time of kernel threads and interrupts, and CPU time that belongs to no process."""
    relay: Share = 0.0
    """CPU time of the relay that adds latency between clients and server."""

    @property
    def measured(self) -> bool:
        """Whether CPU time was measured; otherwise all of it counts as idle."""
        return self.idle < 1.0

    @property
    def taken(self) -> float:
        """CPU time that other programs and other virtual machines used."""
        return self.other + self.steal


@dataclass(frozen=True, slots=True)
class Statement:
    """Response times of one SQL command of a script inside the window. A response time is the time from sending the
    command to receiving the answer."""

    script: str
    line: Natural
    """1-based line of the command in the script."""
    command: Natural
    text: str
    """The beginning of the command as written in the script, on one line."""
    count: Natural
    failed: Natural
    """Number of answers that were errors."""
    mean_s: Amount
    stdev_s: Amount
    """Standard deviation."""
    p50_s: Amount | None = None
    """Median response time. The value is None if there are too few answers for a median, or if the record is from an
    earlier version."""
    p95_s: Amount | None = None
    p99_s: Amount | None = None

    @property
    def histogram(self) -> str:
        """Name of the histogram of the command's response times in the record's evidence."""
        return ANSWERS.format(self.script, self.command)


ANSWERS = "answer_time{{statement={}:{}}}"
PERCENTILES = {"p50_s": 0.50, "p95_s": 0.95, "p99_s": 0.99}
"""Quantile levels of the percentile fields of `Statement`."""


@dataclass(frozen=True, slots=True)
class Record:
    """The complete result of a trial, sufficient to judge the trial. Written once and never changed; at most 16 KB as
    JSON."""

    id: Name
    series: Name
    """Name that all trials of one run or lab share."""
    system: System
    choice: Choice
    cell: Cell
    block: BlockNumber
    purpose: Name
    """Purpose of the trial, usually a `Purpose`. Records of another version may have a purpose that this version does
    not know."""
    started_at: Annotated[str, Meta(pattern=r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", max_length=40)]
    """Start of the trial in UTC, ISO 8601, seconds."""
    elapsed_s: Annotated[float, Meta(ge=0, le=1e10)]
    """Length of the measured window."""
    status: Status
    metrics: dict[str, float]
    """Metrics by catalogue name, in base units. Metrics of parts have a label: `name{script=x}`."""
    checks: tuple[Check, ...] = ()
    warnings: tuple[Note, ...] = ()
    causes: tuple[Note, ...] = ()
    """Why the trial is invalid, failed or aborted. Empty for a flagged trial, because its notes contain the reason
    (`flags`). In records before schema 4, flagged trials have causes as well."""
    budget: Budget = Budget()
    machine: Key = ""
    """Content key of the machine's fingerprint in the store."""
    server_machine: Key = ""
    """Only for an existing server (`--dsn`): content key of the fingerprint of the server's machine. Empty unless the
    machine was observed or is the same as `machine`. Code should call `machine_of` instead."""
    engine: Key = ""
    """Content key of the engine's facts (version, settings, configure flags) in the store."""
    scripts: dict[str, Key] = field(default_factory=dict)
    """For each script that was run, the content key of its text in the store."""
    software: dict[str, str] = field(default_factory=dict)
    """Version of ironbench, build profile, and versions of Python and packages."""
    stage: StageNumber = 1
    attempt: StageNumber = 1
    conditions: dict[str, str] = field(default_factory=dict)
    """Conditions that were established and verified before the trial, such as restored data, caches or an idle machine.
    These conditions are for information only."""
    method: Annotated[str, one_of("trials", "slices", "duet")] = TRIALS
    """Method of measurement: `TRIALS`, `SLICES` or `DUET`."""
    turns_since: Label = ""
    """Time at which interleaving of the block's systems started, ISO 8601. Systems that were interleaved with each
    other have the same value. Empty for whole trials."""
    seed_given: bool = False
    """Whether the user chose the seed."""
    search_range: tuple[Count, Count] | None = None
    """Lowest and highest load (clients, or rate) of the search that the trial is part of. None without a search."""
    limits: tuple[Limit, ...] = ()
    """Constraints under which the search looks for the best load."""
    requirements: tuple[Claim, ...] = ()
    """Requirements that the run declared (`--require`)."""
    search_result: Note | None = None
    """The result of the search that chose the trial's load."""
    crash: Annotated[str, one_of("", "lose", "subset", "torn")] = ""
    """What happens to unflushed writes at the power cut after the trial: `lose`, `subset` or `torn`. Empty if there is
    no power cut."""
    profile: ProfileRequest | None = None
    """The stacks that the run or lab wants to be sampled, or None if no stacks are sampled. Auxiliary trials are not
    profiled."""
    power_cut: bool = False
    """Whether the power was cut after the trial and the engine recovered."""
    answers: Note | None = None
    """How the answers of the workload's queries were checked."""
    files: dict[str, Digest] = field(default_factory=dict)
    """SHA-256 digests of the record's other files, by file name. Empty in records before schema 3."""
    commands: tuple[CommandRun, ...] = ()
    """The user's commands that ended since the previous record, in order: cleanup commands of the previous trial, and
    prepare commands of this trial."""
    statements: tuple[Statement, ...] = ()
    """Times of SQL commands. Empty if the trial ran without `--report-per-statement`."""
    tags: dict[str, str] = field(default_factory=dict)
    """The user's tags for all trials of the run or lab, such as `commit` with the value `1f3c2a9`."""
    described: Described | None = None
    """Facts about workload and engine, or None in records of earlier versions. Code should call
    `records.described.described` instead."""
    schema: Count = SCHEMA

    def warned(self, code: str) -> bool:
        """Returns whether the record has a warning with this code."""
        return any(warning.code == code for warning in self.warnings)

    @property
    def flags(self) -> tuple[Note, ...]:
        """The notes that flag the trial."""
        return tuple(one for one in self.warnings if one.code in SUSPICIOUS)

    @property
    def kept_rate(self) -> bool | None:
        """Whether an open-loop trial sustained its target rate, or None for a closed loop."""
        if self.cell.load.rate is None and self.cell.load.rate_share is None:
            return None
        return not self.warned(RATE_NOT_KEPT)

    @property
    def scheduled_throughput(self) -> float:
        """Transactions per second in the measured window, counting only clients to which a target rate applies."""
        return self.metrics.get("scheduled_throughput", self.metrics["throughput"])


def machine_of(record: Record) -> str:
    """Returns the content key of the fingerprint of the server's machine. Returns an empty key if the machine is
    unknown.

    An existing server (`--dsn`) may be on any machine. The machine is known if it was observed (`--server`), or if the
    server's processes were visible on the client's machine. In records without `server_machine`, CPU time of the engine
    shows that the processes were visible.
    """
    if record.server_machine:
        return record.server_machine
    seen_here = record.system.dsn is None or "engine_cpu_cores" in record.metrics
    return record.machine if seen_here else ""


def machines_of(record: Record) -> tuple[str, str]:
    """Returns the content keys of the server's machine and of the client's machine. A result depends on both."""
    return machine_of(record), record.machine
