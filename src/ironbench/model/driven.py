"""The result of driving one trial, before it is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ironbench.model.inside import NOTHING, ServerStatistics
from ironbench.model.note import Note
from ironbench.model.observation import Series
from ironbench.model.record import Check
from ironbench.model.trial_notes import NO_NOTES, TrialNotes
from ironbench.model.workers import WorkerPart

if TYPE_CHECKING:
    from ironbench._core import Histogram


@dataclass(frozen=True, slots=True)
class ServerMachine:
    """The machine of the server, which may differ from this machine, and how it was observed."""

    address: str
    machine: str = ""
    """Content key of its fingerprint in the store."""
    ours: bool = False
    """Whether the server's machine is this machine, so that client and observers use part of its CPU time."""
    own: frozenset[int] = frozenset()
    """Ids of the processes on that machine under which everything of ironbench ran."""


@dataclass(frozen=True, slots=True)
class Driven:
    """The core's result and the workload's checks; `failure` says why there is no result."""

    started_at: str
    """UTC, ISO 8601."""
    alive: bool
    """Whether the engine was still running after the trial."""
    failure: Note | None = None
    storage_died: str = ""
    """How an emulated device failed during the trial; empty if none did."""
    last_words: str = ""
    """The last message of an engine that has ended."""
    summary: Mapping[str, Any] = field(default_factory=dict)
    timeline: Mapping[str, bytes] = field(default_factory=dict)
    seconds: Mapping[str, bytes] = field(default_factory=dict)
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    samples: Mapping[str, list[tuple[float, bytes]]] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Metrics that a workload measured itself, if it drives itself."""
    series: tuple[Series, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The workload's own evidence, by file name."""
    scripts: Mapping[str, str] = field(default_factory=dict)
    """Name → text of every script, as it was run."""
    checks: tuple[Check, ...] = ()
    cause: Note | None = None
    """Why a workload that drives itself ended early."""
    answers: Note | None = None
    """As in `Record.answers`."""
    power_cut: bool = False
    """As in `Record.power_cut`."""
    prepared: TrialNotes = NO_NOTES
    """Conditions that were established and verified for the trial while its engine was running."""
    counts: tuple[str, str] = ("transaction", "transactions")
    """Name of the unit of work, singular and plural."""
    inside_server: ServerStatistics = NOTHING
    """The server's own statistics of the trial."""
    elsewhere: ServerMachine | None = None
    """The server's machine, if it was observed over ssh; None: all samples are from this machine."""
    workers: tuple[WorkerPart, ...] = ()
    """Results of the workers; empty: this process drove the trial."""
    fingerprints: Mapping[int, Any] = field(default_factory=dict)
    """Fingerprints of the workers' machines, by number of the worker."""
    log: bytes = b""
    """Standard error of the child process that drove the trial."""

    @property
    def inside(self) -> bool:
        """Whether the system runs in ironbench's own threads, so that their CPU time counts as the system's."""
        return bool(self.summary.get("inside", self.summary.get("io") == "blocking"))

    @property
    def drives_itself(self) -> bool:
        """Whether the workload drove itself instead of using the core's drive loop."""
        return "inside" in self.summary


def scheduled(summary: Mapping[str, Any]) -> int:
    """Transactions that count towards a target rate.

    This excludes clients that wait for other clients' work. If the summary has no such number, all transactions count.
    """
    return int(summary.get("scheduled", summary["transactions"]))


def client_cpu_s(summary: Mapping[str, Any]) -> float:
    """CPU seconds of the client's threads inside the measured window."""
    cpu = summary.get("client_cpu_s") or {}
    return float(cpu.get("user", 0.0)) + float(cpu.get("system", 0.0))


def driving_cpu_s(summary: Mapping[str, Any]) -> float:
    """CPU seconds of the threads that drive transactions, without the threads that only reconnect."""
    return client_cpu_s(summary) - float(summary.get("reconnects_cpu_s", 0.0))
