"""The result of running one trial, before it is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ironbench.model.inside import NOTHING, ServerStatistics
from ironbench.model.note import Note
from ironbench.model.observation import Series
from ironbench.model.profile import SampledProfile
from ironbench.model.record import Check
from ironbench.model.trial_notes import NO_NOTES, TrialNotes
from ironbench.model.workers import WorkerPart

if TYPE_CHECKING:
    from ironbench._core import Histogram


@dataclass(frozen=True, slots=True)
class ServerMachine:
    """The server's machine and how it was observed. The server may be on this machine or on another one."""

    address: str
    machine: str = ""
    """Content key of the machine's fingerprint in the store."""
    ours: bool = False
    """Whether ironbench runs on the server's machine. The client and the observers then use part of the machine's CPU
    time."""
    own: frozenset[int] = frozenset()
    """Ids of processes on that machine. Every process of ironbench there is one of them or a descendant of one of
    them."""


@dataclass(frozen=True, slots=True)
class Driven:
    """The core's result and the results of the workload's checks. If there is no result, `failure` contains the
    reason."""

    started_at: str = ""
    """Start of the trial in UTC, ISO 8601."""
    alive: bool = True
    """Whether the engine was still running after the trial."""
    failure: Note | None = None
    storage_died: str = ""
    """How an emulated device failed during the trial. Empty if no device failed."""
    last_words: str = ""
    """The engine's last message, if the engine has ended."""
    summary: Mapping[str, Any] = field(default_factory=dict)
    timeline: Mapping[str, bytes] = field(default_factory=dict)
    seconds: Mapping[str, bytes] = field(default_factory=dict)
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    samples: Mapping[str, list[tuple[float, bytes]]] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Metrics that the workload measured itself, if the workload runs its own code."""
    series: tuple[Series, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Contents of the workload's own evidence files, by file name."""
    scripts: Mapping[str, str] = field(default_factory=dict)
    """Texts of the scripts that the trial ran, by script name."""
    checks: tuple[Check, ...] = ()
    cause: Note | None = None
    """Why the workload ended early, if the workload runs its own code."""
    answers: Note | None = None
    """See `Record.answers`."""
    power_cut: bool = False
    """See `Record.power_cut`."""
    prepared: TrialNotes = NO_NOTES
    """Conditions that were established and checked for the trial while its engine was running."""
    counts: tuple[str, str] = ("transaction", "transactions")
    """Name of the unit of work, in the singular and the plural."""
    inside_server: ServerStatistics = NOTHING
    """The server's own statistics of the trial."""
    elsewhere: ServerMachine | None = None
    """The server's machine, if ironbench observed it over SSH, or None if all samples are from this machine."""
    workers: tuple[WorkerPart, ...] = ()
    """Results of the workers. If empty, this process drove the trial."""
    fingerprints: Mapping[int, Any] = field(default_factory=dict)
    """Fingerprints of the workers' machines, indexed by the worker's number."""
    profile: SampledProfile | None = None
    """The stacks that were sampled in the measured window, or None if no stacks were requested."""
    log: bytes = b""
    """Standard error of the child process that drove the trial."""

    @property
    def inside(self) -> bool:
        """Whether the system runs in ironbench's own threads. The CPU time of these threads then counts as CPU time of
        the system."""
        return bool(self.summary.get("inside", self.summary.get("io") == "blocking"))

    @property
    def drives_itself(self) -> bool:
        """Whether the workload ran its own code instead of the core's drive loop."""
        return "inside" in self.summary


NOT_DRIVEN = Driven()
"""For a record that has no other data."""


def scheduled(summary: Mapping[str, Any]) -> int:
    """Returns the number of transactions to which a target rate applies.

    Transactions of clients that wait for work from other clients do not count. If the summary does not contain this
    number, all transactions count.
    """
    return int(summary.get("scheduled", summary["transactions"]))


def client_cpu_s(summary: Mapping[str, Any]) -> float:
    """Returns the CPU seconds that the client's threads used inside the measured window."""
    cpu = summary.get("client_cpu_s") or {}
    return float(cpu.get("user", 0.0)) + float(cpu.get("system", 0.0))


def driving_cpu_s(summary: Mapping[str, Any]) -> float:
    """Returns the CPU seconds of the threads that drive transactions. Threads that only reconnect are left out."""
    return client_cpu_s(summary) - float(summary.get("reconnects_cpu_s", 0.0))
