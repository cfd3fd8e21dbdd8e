"""The result of driving one trial, before it is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ironbench.model.inside import NOTHING, Inside
from ironbench.model.note import Note
from ironbench.model.observation import Series
from ironbench.model.record import Check
from ironbench.model.trial_notes import NO_NOTES, TrialNotes
from ironbench.model.workers import WorkerPart

if TYPE_CHECKING:
    from ironbench._core import Histogram


@dataclass(frozen=True, slots=True)
class Computed:
    """CPU of the engine's processes and of ours over a time, which may begin before the measured one."""

    began_unix_s: float
    ended_unix_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """How a trial's machine was watched that need not be ours."""

    address: str
    machine: str = ""
    """Content key of its fingerprint in the store."""
    ours: bool = False
    """It is this machine: client and observers take their share of its CPU."""
    own: frozenset[int] = frozenset()
    """Processes there under which everything of ours ran."""


@dataclass(frozen=True, slots=True)
class Driven:
    """The core's result and the workload's checks; `failure` says why there is no result."""

    started_at: str
    """UTC, ISO 8601."""
    alive: bool
    """Whether the engine still ran afterwards."""
    failure: Note | None = None
    storage_died: str = ""
    """How an emulated device under it died; empty while all live."""
    last_words: str = ""
    """The last message of an engine that has ended."""
    summary: Mapping[str, Any] = field(default_factory=dict)
    timeline: Mapping[str, bytes] = field(default_factory=dict)
    seconds: Mapping[str, bytes] = field(default_factory=dict)
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    samples: Mapping[str, list[tuple[float, bytes]]] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    """What a workload that drives itself measured of its own."""
    series: tuple[Series, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Evidence of its own, by name of file."""
    scripts: Mapping[str, str] = field(default_factory=dict)
    """Name → text of every script, as it was driven."""
    checks: tuple[Check, ...] = ()
    cause: Note | None = None
    """Why a workload that drives itself ended early."""
    answers: Note | None = None
    """As in `Record.answers`."""
    power_cut: bool = False
    """As in `Record.power_cut`."""
    prepared: TrialNotes = NO_NOTES
    """What was done for the trial while its engine ran, and verified afterwards."""
    counts: tuple[str, str] = ("transaction", "transactions")
    """What a unit of its work is called, one and many."""
    inside_server: Inside = NOTHING
    """What the server said of it."""
    computed: Computed | None = None
    """While it was driven; None where nobody knows."""
    elsewhere: Elsewhere | None = None
    """None: what was sampled is of this machine."""
    workers: tuple[WorkerPart, ...] = ()
    """Empty: this process drove it."""
    fingerprints: Mapping[int, Any] = field(default_factory=dict)
    """Of their machines, by number of the worker."""
    log: bytes = b""
    """What a child process wrote on its standard error."""

    @property
    def inside(self) -> bool:
        """The system works in our own threads: their CPU time is the system's, not a client's."""
        return bool(self.summary.get("inside", self.summary.get("io") == "blocking"))

    @property
    def drives_itself(self) -> bool:
        """Driven by the workload, not by the core's loop."""
        return "inside" in self.summary


def scheduled(summary: Mapping[str, Any]) -> int:
    """Transactions that a rate counts: those of clients that wait for work of others are not among them. All, where the
    summary does not tell."""
    return int(summary.get("scheduled", summary["transactions"]))


def client_cpu_s(summary: Mapping[str, Any]) -> float:
    """CPU seconds of the client's threads inside the measured window."""
    cpu = summary.get("client_cpu_s") or {}
    return float(cpu.get("user", 0.0)) + float(cpu.get("system", 0.0))


def driving_cpu_s(summary: Mapping[str, Any]) -> float:
    """Of those that drive alone, without those that connect anew."""
    return client_cpu_s(summary) - float(summary.get("reconnects_cpu_s", 0.0))
