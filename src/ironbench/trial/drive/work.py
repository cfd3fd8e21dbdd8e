"""Runs one trial of a workload that drives its own load, and converts its result to the same form as the results of
other trials."""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ironbench import engines, workloads
from ironbench.model.driven import Driven
from ironbench.model.observation import Source
from ironbench.model.plan import Plan
from ironbench.model.session import Session
from ironbench.model.system import Load, System
from ironbench.model.trial_notes import TrialNotes
from ironbench.model.work import Outcome, Work

if TYPE_CHECKING:
    from ironbench._core import Sampler


def run_work(
    plan: Plan,
    session: Session,
    load: Load,
    sources: Callable[[], Iterable[Source]],
    show: Callable[[float, str], None],
    folder: Path,
    follow: Callable[[str, float], None] = lambda phase, elapsed_s: None,
) -> Driven:
    """Runs one trial. Exceptions of the workload are passed on. `folder`: temporary directory of the trial."""
    workload = workloads.get(plan.choice.workload)
    # `target` is called before the observers start, because it may end the process of a library engine. Observers must
    # watch the process that does the work.
    target = session.target(load.protocol, load.io)
    window = MeasuredWindow(target, sources(), follow)
    with interruptible() as interrupt, _bound(_cpus(plan.system)):
        work = Work(
            session=session,
            system=plan.system,
            choice=plan.choice,
            load=load,
            folder=str(folder),
            show=show,
            stopping=interrupt.happened,
            on_stop=interrupt.tell,
            window=window.open,
        )
        outcome = workload.drive(work)
    return _driven(outcome, window, load, interrupt)


class MeasuredWindow:
    """The measured window of a workload that drives its own load. During the window, observers sample and CPU time is
    counted."""

    def __init__(
        self,
        target: Mapping[str, Any],
        sources: Iterable[Source],
        follow: Callable[[str, float], None] = lambda phase, elapsed_s: None,
    ) -> None:
        self._target = target
        self._sources = tuple(sources)
        self._follow = follow
        self._began = self._ended = 0.0
        self.started_unix_s = 0.0
        self.cpu = (0.0, 0.0)
        self.seen: dict[str, Any] = {"observer_cpu_s": 0.0, "samples": {}}

    @property
    def elapsed_s(self) -> float:
        if not self._began:
            return 0.0
        return (self._ended or time.perf_counter()) - self._began

    @contextmanager
    def open(self) -> Iterator[MeasuredWindow]:
        """Opens the window. Raises FailureError if an observer's source is invalid."""
        if self._began:
            raise RuntimeError("a trial has one measured window")
        sampler = _sampler(self._target, self._sources)
        before = _cpu()
        self.started_unix_s = time.time()
        sampler.start()
        self._began = time.perf_counter()
        self._follow("run", 0.0)
        try:
            yield self
        finally:
            self._ended = time.perf_counter()
            sampler.mark()
            self._follow("drain", self.elapsed_s)
            after = _cpu()
            seen = sampler.stop()
            self.seen = {**msgspec.json.decode(seen.summary, type=dict[str, Any]), "samples": seen.samples}
            user, system = (late - early for late, early in zip(after, before, strict=True))
            # The sampling threads are part of this process, but their CPU time is counted separately. It is subtracted
            # from the system time, because these threads spend most of their time in the kernel, reading files.
            self.cpu = (user, max(0.0, system - self.seen["observer_cpu_s"]))


def _sampler(target: Mapping[str, Any], sources: tuple[Source, ...]) -> Sampler:
    from ironbench import _core

    declared = [{"name": s.name, "kind": s.kind, "target": s.target, "period_s": s.period_s} for s in sources]
    return _core.Sampler(msgspec.json.encode(declared), msgspec.json.encode(target.get("connection")))


def _driven(outcome: Outcome, window: MeasuredWindow, load: Load, interrupt: Interrupt) -> Driven:
    seen = dict(window.seen)
    samples = seen.pop("samples")
    user, system = window.cpu
    done = outcome.transactions
    summary = {
        "elapsed_s": window.elapsed_s,
        "warmup_s": load.warmup_s,
        "transactions": done,
        "completed": done,
        "failed": outcome.failed,
        "errors": dict(outcome.errors),
        "error_messages": {},
        "scripts": [],
        "client_cpu_s": {"user": user, "system": system},
        "client_cpu_per_transaction_s": (user + system) / done if done else None,
        "io": "",
        "inside": outcome.inside,
        "cut_short": interrupt.happened(),
        "aborted": outcome.cause is not None,
        "cause": "",
        "started_unix_s": window.started_unix_s,
        "threads": load.threads,
        "clients": load.clients,
        **seen,
    }
    return Driven(
        summary=summary,
        timeline=outcome.timeline,
        seconds=outcome.seconds,
        histograms=outcome.histograms,
        samples=samples,
        metrics=outcome.metrics,
        series=outcome.series,
        files=outcome.files,
        checks=outcome.checks,
        cause=outcome.cause,
        answers=outcome.answers,
        prepared=TrialNotes(dict(outcome.facts), outcome.warnings),
    )


def _cpu() -> tuple[float, float]:
    """Returns the CPU seconds of this process, in user mode and in the kernel (getrusage(2)). Children that have ended
    and that this process has waited for are included."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime for one in used), sum(one.ru_stime for one in used)


def _cpus(system: System) -> tuple[int, ...] | None:
    """Returns the CPUs on which the work may run. If there is no engine, the work itself is measured, so it gets the
    server's CPUs."""
    own = system.server_cpus if engines.get(system.engine).can("bare machine") else None
    return own or system.client_cpus


@contextmanager
def _bound(cpus: tuple[int, ...] | None) -> Iterator[None]:
    """Pins this thread, and threads that it starts inside the block, to these CPUs."""
    if cpus is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class Interrupt:
    """The user's request to end the trial."""

    def __init__(self) -> None:
        self._happened = False
        self._listeners: list[Callable[[], None]] = []

    def happened(self) -> bool:
        return self._happened

    def tell(self, what: Callable[[], None]) -> None:
        """Registers a callback, which is called once, in the signal handler. If the user has already pressed Ctrl-C,
        the callback is called immediately."""
        self._listeners.append(what)
        if self._happened:
            what()

    def now(self) -> None:
        self._happened = True
        for what in self._listeners:
            what()


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Converts Ctrl-C to an `Interrupt` during the block. Only the main thread receives interrupts."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def handler(number: int, frame: object) -> None:
        if interrupt.happened():
            raise KeyboardInterrupt
        interrupt.now()

    before = signal.signal(signal.SIGINT, handler)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
