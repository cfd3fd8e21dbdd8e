"""Compiles the plan of a trial for the core, runs it in a child process, and shows the progress of a trial."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ironbench.host import job
from ironbench.host.job import ChildPlacement
from ironbench.model.driven import Driven
from ironbench.model.observation import Source
from ironbench.model.plan import Plan
from ironbench.model.system import Load, Trial
from ironbench.words import grouped
from ironbench.workloads.base import ProgressRate

if TYPE_CHECKING:
    from ironbench._core import DriveResult, Progress
    from ironbench.workloads.base import ScriptSource


ProgressListener = Callable[["Progress"], None]
"""Function that is called several times a second during a trial, and once at its end, with the progress of the
trial."""


@dataclass(frozen=True, slots=True)
class Tasks:
    """The work of the clients: scripts with their variables, or other work that the core provides."""

    scripts: Sequence[ScriptSource] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    work: Mapping[str, Any] | None = None
    """Work of the core other than scripts. If the load sets no duration, this work decides when the trial ends."""
    jobs: Mapping[str, Any] | None = None
    """Plan for the part of the core that chooses the next script or generates the input of scripts. If it is None,
    scripts are chosen by their weights."""
    retried_errors: tuple[str, ...] = ()
    """Classes of errors, in addition to serialization failures and deadlocks, after which a transaction is tried
    again."""
    bind_back: bool = False
    """For a directory server: if a client has bound as another user, whether it then binds again as the user of the
    connection."""


def compiled_plan(
    target: Mapping[str, Any],
    tasks: Tasks,
    load: Load,
    sources: Iterable[Source],
    plan: Plan | None = None,
    trial: Trial | None = None,
) -> bytes:
    """Returns the plan as JSON for crates/ironbench-core/src/drive/plan.rs.

    `target` contains the password, if any, so the result must not be stored. `plan`, `trial`: the run and the trial in
    it; without them, any CPU may be used.
    """
    schedule: dict[str, Any]
    if load.rate is None:
        schedule = {"kind": "closed", "think_time_s": load.think_time_s}
    else:
        schedule = {"kind": "open", "rate": load.rate, "arrivals": load.arrivals}
    if load.curve is not None:
        schedule["kind"] += "_curve"
        schedule.pop("rate", None)
        schedule["pieces"] = load.curve.pieces(load.warmup_s, load.duration_s or load.curve.length_s)
    stop: dict[str, Any] = {"transactions": load.transactions or 1}
    if load.transactions is None and load.duration_s is not None:
        stop = {"duration_s": load.duration_s}
    of_connections: dict[str, Any] = {"reconnect": load.reconnect} if load.reconnect else {}
    if tasks.bind_back:
        of_connections["bind_back"] = True
    log = plan.transaction_log_of(trial) if plan and trial else ""
    return msgspec.json.encode(
        {
            "engine": {**target, **of_connections},
            "scripts": [{"name": s.name, "text": s.text, "weight": s.weight} for s in tasks.scripts],
            "work": tasks.work,
            **({"jobs": tasks.jobs} if tasks.jobs is not None else {}),
            "variables": list(tasks.variables.items()),
            "clients": load.clients,
            "threads": load.threads,
            "client_cpus": list((plan.system.client_cpus if plan else None) or ()),
            "seed": load.seed,
            "schedule": schedule,
            "stop": stop,
            "warmup_s": load.warmup_s,
            "max_tries": load.max_tries,
            **({"retried_errors": tasks.retried_errors} if tasks.retried_errors else {}),
            "on_error": load.on_error,
            "reconnect_on_loss": load.reconnect_on_loss,
            "statements": load.report_per_statement,
            **({"log": {"path": log, "sampling_rate": plan.sampling_rate}} if plan and log else {}),
            "observers": [
                {"name": s.name, "kind": s.kind, "target": s.target, "period_s": s.period_s} for s in sources
            ],
        }
    )


def drive_in_child(plan: bytes, progress: Progress, child: ChildPlacement) -> DriveResult:
    """Runs a trial like `_core.drive`, in a child process.

    Ctrl-C and `progress.stop()` end the trial and keep its result; a second Ctrl-C ends the child and raises
    KeyboardInterrupt. Raises the trial's exceptions, and EngineDiedError if the child died, with the signal in its
    cause.
    """
    from ironbench import _core

    def show(state: Any) -> None:
        phase, elapsed_s, transactions, failed, seconds = state
        progress.show(phase, elapsed_s, transactions, failed, [tuple(second) for second in seconds])

    call = job.CoreCall("drive", plan, "the engine's process")
    result = job.run(call, child, show=show, stopping=lambda: progress.stopping, keep=True)
    return _core.DriveResult.from_bytes(result)


class ProgressLines:
    """Prints a line of progress for each interval of the measured window and of the warm-up, in the format of pgbench's
    -P. A rate of the workload follows at the end of the line."""

    def __init__(self, say: Callable[[str], None], every_s: int, rate: ProgressRate | None) -> None:
        self._say = say
        self._every_s = every_s
        self._rate = rate
        self._seen = 0
        """Number of seconds of the window that have been printed or buffered."""
        self._passed: list[tuple[float, int, int, float, float, int]] = []
        self._lines_to_come = 0
        """Number of lines for the warm-up that have not been printed yet. The last line is for the time 0 s."""
        self._begun: tuple[float, int] | None = None
        """Seconds and transactions at the start of the current interval of the warm-up."""
        self._warmed = (0.0, 0)
        """Seconds and transactions in the latest state of the warm-up."""

    def update(self, progress: Progress) -> None:
        """Prints lines that are due. Must be called a few times a second, and at the end."""
        if progress.phase == "warmup":
            self._warm_up(progress.elapsed_s, progress.transactions)
        elif self._lines_to_come and progress.phase != "connect":
            self._warm_up_line(0)
        for second in progress.seconds(self._seen):
            self._seen += 1
            self._passed.append(second)
            if len(self._passed) == self._every_s and second[0] >= 1.0:
                self._line(self._seen, self._passed)
                self._passed = []

    def _warm_up(self, elapsed_s: float, transactions: int) -> None:
        to_come = math.ceil(-elapsed_s / self._every_s)
        self._warmed = (elapsed_s, transactions)
        if self._begun is None:
            self._begun, self._lines_to_come = self._warmed, to_come
        elif to_come < self._lines_to_come:
            self._warm_up_line(to_come)

    def _warm_up_line(self, to_come: int) -> None:
        assert self._begun is not None
        took_s, done = self._warmed[0] - self._begun[0], self._warmed[1] - self._begun[1]
        if took_s > 0:
            self._say(f"progress: {0 - to_come * self._every_s:.1f} s, warm-up, {done / took_s:.1f} tps")
        self._begun, self._lines_to_come = self._warmed, to_come

    def _line(self, at_s: int, passed: Sequence[tuple[float, int, int, float, float, int]]) -> None:
        done = sum(second[1] for second in passed)
        failed = sum(second[2] for second in passed)
        some = [second for second in passed if second[1]]
        mean = sum(second[1] * second[3] for second in some) / done if done else 0.0
        # The variance of all response times is the mean of the variances within the seconds, plus the variance of the
        # seconds' means.
        squares = sum(second[1] * (second[4] ** 2 + (second[3] - mean) ** 2) for second in some)
        stdev = math.sqrt(squares / done) if done else 0.0
        latency = f"lat {mean * 1e3:.3f} ms stddev {stdev * 1e3:.3f}" if done else "lat - ms stddev -"
        line = f"progress: {at_s:.1f} s, {done / self._every_s:.1f} tps, {latency}, {failed} failed"
        if self._rate is not None:
            committed = sum(second[5] for second in passed)
            line += f", {self._rate.of(done, committed, self._every_s):.0f} {self._rate.unit}"
        self._say(line)


_UPDATES_PER_S = 5


class Driver(Protocol):
    """Drives trials in place of this process, for example with workers on other machines."""

    def drive(self, plan: bytes, load: Load, progress: Progress, rehearsal: bool = False) -> Driven:
        """Drives a trial, or the rehearsal of a trial, by its compiled plan. Ctrl-C ends the trial and keeps its
        result."""
        ...


class ProgressDisplay:
    """Shows the progress five times a second from a separate thread."""

    def __init__(
        self,
        progress: Progress,
        load: Load,
        show: Callable[[float, str], None],
        listeners: Sequence[ProgressListener],
        expected_s: float | None = None,
    ) -> None:
        """`expected_s`: probable duration of a trial that ends with its work, for example the length of a capture."""
        self._listeners = listeners
        self._progress = progress
        self._load = load
        self._expected_s = expected_s
        self._show = show
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *exc: object) -> None:
        self._done.set()
        self._thread.join()
        for listener in self._listeners:
            listener(self._progress)

    def _watch(self) -> None:
        passed, warmed = deque([(0, 0.0)], maxlen=1 + _UPDATES_PER_S), 0
        while not self._done.wait(1 / _UPDATES_PER_S):
            done, elapsed, phase = self._progress.transactions, self._progress.elapsed_s, self._progress.phase
            passed.append((done, elapsed))
            warmed = done if phase in ("connect", "warmup") else warmed
            note = f"{grouped(_rate(passed))} transactions/s in the last second" if phase == "run" else phase
            self._show(_fraction(self._load, done - warmed, elapsed, self._expected_s), note)
            for listener in self._listeners:
                listener(self._progress)


def _rate(passed: Sequence[tuple[int, float]]) -> float:
    """Returns the transactions per second between the first and the last element of a list. Each element contains the
    number of transactions so far and the time in seconds."""
    (before, began_s), (done, ended_s) = passed[0], passed[-1]
    return (done - before) / (ended_s - began_s) if ended_s > began_s else 0.0


def _fraction(load: Load, transactions: int, elapsed_s: float, expected_s: float | None) -> float:
    if load.transactions is not None:
        return min(1.0, transactions / (load.transactions * load.clients))
    whole = (load.duration_s or expected_s or 0.0) + load.warmup_s
    return min(1.0, max(0.0, (elapsed_s + load.warmup_s) / whole)) if whole else 0.0
