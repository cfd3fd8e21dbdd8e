"""Drives one trial: prepares the engine, runs the measured window in the core or in the workload itself, and then
checks the results."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ironbench import _core, engines, workloads
from ironbench.engines.existing_server import checked_answers
from ironbench.errors import EngineDiedError, FailureError, IronbenchError, shortened
from ironbench.host import scratch
from ironbench.host.cgroup_limits import OutOfMemoryKills
from ironbench.host.job import ChildPlacement
from ironbench.host.stall import Stall
from ironbench.model.driven import Driven
from ironbench.model.inside import NOTHING, NotShown, ServerStatistics
from ironbench.model.note import note
from ironbench.model.observation import Sample, Source
from ironbench.model.own_data import OwnData
from ironbench.model.plan import Plan
from ironbench.model.purpose import Purpose
from ironbench.model.record import Check
from ironbench.model.session import DelayedSession, RemoteSession, Row, Session
from ironbench.model.system import System, Trial
from ironbench.printer import Printer
from ironbench.trial.drive import caches, power, preparation, profile
from ironbench.trial.drive.live import LiveFile
from ironbench.trial.drive.power import PowerCut
from ironbench.trial.drive.preparation import ReadyEngine
from ironbench.trial.drive.run import (
    Driver,
    ProgressDisplay,
    ProgressLines,
    ProgressListener,
    Tasks,
    compiled_plan,
    drive_in_child,
)
from ironbench.trial.drive.statements import statements
from ironbench.trial.drive.work import run_work
from ironbench.workloads.base import checked

if TYPE_CHECKING:
    from ironbench._core import DriveResult


_WORDS_PATIENCE_S = 1.0
_CHILD_LOG = "child.log"
"""File in the trial's temporary directory for the standard error of a child process."""


@dataclass(frozen=True, slots=True)
class DriveOptions:
    """Options of a trial that do not affect its measured window."""

    title: str = ""
    """Title of the progress bar."""
    quiet_s: float | None = None
    """Maximum wait for an idle machine, see `preparation.finished`."""
    power_cut: PowerCut | None = None
    """A power cut after the measured window and before the checks. If it is None, the power is not cut."""
    while_checking: Callable[[], AbstractContextManager[None]] = nullcontext
    """Context manager in which the checks run if there is no power cut."""
    follow: Callable[[str, float], None] = lambda phase, elapsed_s: None
    """Function that is called several times a second during a trial, and once at its end, with the phase of the trial
    and the seconds since the window began."""
    drop_caches: preparation.DropCaches = caches.drop
    driver: Driver | None = None
    """Object that drives the trial. If it is None, this process drives the trial."""
    live: LiveFile | None = None
    """File in which the live state of the trial is published."""
    combine: Callable[[Mapping[str, Any]], Mapping[str, Any] | None] = lambda summary: summary
    """Function that gets the summary of the trial and returns the summary for the checks. If other trials changed the
    same data at the same time, it combines their summaries. If it returns None, the checks are skipped."""
    by_clock: bool = True
    """Whether checkpoints may be timed by the server's clock. False for interleaved trials, because the clock of a
    paused server continues."""


def drive(
    plan: Plan,
    session: Session,
    trial: Trial,
    sources: Callable[[], Iterable[Source]],
    printer: Printer,
    options: DriveOptions = DriveOptions(),
) -> Driven:
    """Drives a trial from start to end. If the engine fails, the result contains the failure.

    `sources` is called when the engine is in the state in which it will be measured.
    """
    started_at, oom_kills = datetime.now(UTC).isoformat(timespec="seconds"), OutOfMemoryKills()
    with scratch.folder() as folder:
        running = _RunningTrial(plan, session, trial, options, folder)
        try:
            with checked_answers(plan.system.dsn is not None):
                result = running.result(sources, printer)
        except IronbenchError as error:
            printer.error(error)
            alive = session.alive() and not isinstance(error, EngineDiedError)
            result = Driven(alive=alive, failure=error.note)
        last_words = "" if result.alive else _last_words(session)
        if result.failure or not result.alive or result.summary.get("aborted", False):
            # The kernel's message comes first, followed by the engine's message about the same event.
            last_words = "; ".join(filter(None, (oom_kills.words(), last_words)))
        log = folder / _CHILD_LOG
        return replace(
            result,
            started_at=started_at,
            last_words=last_words,
            inside_server=running.statistics,
            log=log.read_bytes() if log.exists() else b"",
        )


def trial_seed(seed: int, trial: Trial, trials: int) -> int:
    """Returns the seed of a trial, which depends on the run's seed. `trials`: number of planned trials.

    A run with only one trial uses the seed itself, as pgbench does with --random-seed.

    Otherwise, different trials use different random numbers. With equal numbers, all trials would access the same rows,
    and later trials would find these rows in caches. Also, a workload that inserts and deletes at random would change
    the same customers in every trial, until these customers reach the limits of the workload.

    In a lab, however, all configurations of a block use the same numbers. These configurations are compared with each
    other and start from the same data, so the effect of the numbers cancels out (common random numbers: Law,
    "Simulation Modeling and Analysis", section 11.2).
    """
    if trials == 1 and trial.purpose == Purpose.SWEEP:
        return seed
    cell = "" if trial.purpose in (Purpose.LAB, Purpose.OBSERVED) else trial.cell.name
    text = f"{seed} {cell} {trial.purpose} {trial.block}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1


class _RunningTrial:
    """A trial that is prepared, measured and checked."""

    def __init__(self, plan: Plan, session: Session, trial: Trial, options: DriveOptions, folder: Path) -> None:
        self._plan, self._session, self._trial, self._options, self._folder = plan, session, trial, options, folder
        self._engine, self._workload = engines.get(session.engine), workloads.get(plan.choice.workload)
        self._scripts = self._workload.scripts(session.engine, plan.choice)
        self.statistics = NOTHING
        """The server's statistics collected so far."""

    def result(self, sources: Callable[[], Iterable[Source]], printer: Printer) -> Driven:
        """Prepares, measures and checks the trial. Raises IronbenchError."""
        plan, session, workload, options = self._plan, self._session, self._workload, self._options
        with printer.bar(options.title or self._title()) as show:
            ready, before = self._prepared()
            rate = workload.progress_rate(session.engine, plan.choice.options)
            listeners: list[ProgressListener] = (
                [ProgressLines(printer.say, plan.progress_s, rate).update] if plan.progress_s else []
            )
            listeners += [options.live.update] if options.live else []
            request = profile.of_trial(plan, self._trial)
            elsewhere = bool(plan.system.server)
            profiler = profile.started(request, session, elsewhere) if request is not None else None
            result = self._window(self._trial, lambda: (*sources(), *ready.sources), show, listeners, options.follow)
            if profiler is not None:
                result = replace(result, profile=profile.stopped(profiler, result.summary))
        alive = session.alive()
        ended = alive and not result.summary["aborted"]
        metrics = dict(result.metrics)
        if ended and not result.summary["cut_short"]:
            metrics |= workload.measured(session, plan.choice.options, before, result.summary)
        if alive:
            self.statistics = self._statistics_of(result)
        notes = preparation.verified(ready, session) if alive else ready.prepared
        recovery = None
        if ended and options.power_cut is not None:
            recovery = power.cut(session, options.power_cut, self._seed(self._trial))
            notes = notes.merge(recovery.conditions(), recovery.warnings())
            metrics |= recovery.metrics()
        checks = self._checks(before, result.summary) if ended else ()
        protocol = self._engine.protocol(self._trial.cell.load.protocol)
        texts = workload.warnings(session.engine, plan.choice, protocol)
        forecast = workload.forecast(self._trial.cell.load, plan.choice)
        warnings = (*(note(workload.warning_code, text=text) for text in texts), *forecast, *result.prepared.warnings)
        return replace(
            result,
            alive=alive,
            scripts={script.name: script.text for script in self._scripts},
            metrics=metrics,
            checks=(*result.checks, *checks),
            counts=workload.counts,
            power_cut=recovery is not None,
            prepared=notes.merge(result.prepared.conditions, warnings),
        )

    def _title(self) -> str:
        plan, trial = self._plan, self._trial
        only_repeats = trial.purpose == Purpose.SWEEP and len({one.cell.name for one in plan.trials}) == 1
        what = "trial" if only_repeats else trial.purpose
        return f"{plan.system.label}  {trial.cell.name}  {what} {trial.block + 1}"

    def _prepared(self) -> tuple[ReadyEngine, Any]:
        """Prepares data, engine and caches. Returns the engine, and what the workload read before the trial."""
        plan, session, workload, options = self._plan, self._session, self._workload, self._options
        workload.set_up(session, plan.choice.options, plan.system.dsn is None)
        ready = preparation.prepare_engine(plan, session, self._trial, self._rehearse, options.by_clock)
        reads = self._has_data or workload.looks_before
        before = workload.before(session, plan.choice.options) if reads else None
        self.statistics = self._first_statistics()
        load = self._trial.cell.load
        return preparation.finished(ready, session, load, options.quiet_s, options.drop_caches), before

    def _rehearse(self) -> None:
        """Runs the load for a short time without measuring it. Raises FailureError if this failed, because the trial
        would also fail."""
        summary = self._window(preparation.rehearsal(self._trial), tuple, lambda *_: None).summary
        if summary["aborted"]:
            raise FailureError("warm-up pass", summary["cause"] or "the workload ended early")
        if summary["cut_short"]:
            raise KeyboardInterrupt

    def _first_statistics(self) -> ServerStatistics:
        """Starts collecting the server's statistics and gets query plans. Must be called before the caches are emptied,
        because planning reads data. An error of the server in this step does not end the trial; driving the trial will
        show the problem."""
        plan, session = self._plan, self._session
        if not plan.observe:
            return NOTHING
        protocol = self._engine.protocol(self._trial.cell.load.protocol)
        scripted = statements(self._scripts, self._variables, protocol, self._seed(self._trial))
        commands = (*scripted, *self._workload.commands(plan.choice.options))
        try:
            return self._engine.administration.insight.begin(session, commands, plan.system.dsn is None)
        except IronbenchError as error:
            return ServerStatistics(missing=(NotShown("Server statistics of the trial", error.cause),))

    def _statistics_of(self, result: Driven) -> ServerStatistics:
        """Returns the server's statistics of the measured window."""
        window_s = float(result.summary.get("elapsed_s") or 0.0)
        if not self._plan.observe or window_s <= 0:
            return self.statistics
        samples = {name: [Sample(t_s, raw) for t_s, raw in taken] for name, taken in result.samples.items()}
        try:
            return self._engine.administration.insight.end(self._session, self.statistics, samples, window_s)
        except IronbenchError as error:
            missing = NotShown("Server statistics of the trial", error.cause)
            return replace(self.statistics, missing=(*self.statistics.missing, missing))

    def _seed(self, trial: Trial) -> int:
        return trial_seed(self._trial.cell.load.seed, trial, len(self._plan.trials))

    def _window(
        self,
        trial: Trial,
        sources: Callable[[], Iterable[Source]],
        show: Callable[[float, str], None],
        listeners: Sequence[ProgressListener] = (),
        follow: Callable[[str, float], None] = lambda phase, elapsed_s: None,
    ) -> Driven:
        """Runs the measured window of the trial or of its rehearsal. The core drives the load, or the workload does so
        itself. If the system has added network latency, it is in effect during the window."""
        load = replace(trial.cell.load, seed=self._seed(trial))
        trial = replace(trial, cell=replace(trial.cell, load=load))
        with _delayed(self._session, self._plan.system):
            if self._workload.drives:
                return run_work(self._plan, self._session, load, sources, show, self._folder, follow)

            def followed(progress: _core.Progress) -> None:
                follow(progress.phase, progress.elapsed_s)

            return self._run_core(trial, sources, show, (followed, *listeners))

    def _run_core(
        self,
        trial: Trial,
        sources: Callable[[], Iterable[Source]],
        show: Callable[[float, str], None],
        listeners: Sequence[ProgressListener],
    ) -> Driven:
        """Compiles the plan and runs it: with a driver of the options, in a child process, or in this process."""
        plan, session, workload = self._plan, self._session, self._workload
        options, load = plan.choice.options, trial.cell.load
        if (units := workload.units(options)) is not None:
            load = replace(load, transactions=-(-units // load.clients))
        tasks = Tasks(
            self._scripts,
            self._variables,
            work=workload.core_work(session.engine, options),
            jobs=workload.jobs(session, options, load),
            retried_errors=self._engine.traits.duplicate_key if workload.retries_duplicate_keys else (),
            bind_back=workload.binds_back(options),
        )
        load = replace(load, reconnect=workload.reconnect(options) or load.reconnect)
        sampled = tuple(sources())
        # `target` is called last. A library engine closes its own connection then, because the locks of this connection
        # would block the clients.
        target = session.target(load.protocol, load.io)
        compiled = compiled_plan(target, tasks, load, sampled, plan, trial)
        stall = None
        if load.duration_s is None and isinstance(session, RemoteSession):
            stall = Stall(session.require_answer, STALLED_S)
            listeners = (*listeners, partial(_stop_stalled, stall))
        progress, driver = _core.Progress(), self._options.driver
        with ProgressDisplay(progress, load, show, listeners, workload.expected_s(session.engine, options)):
            if driver is not None:
                result = driver.drive(compiled, load, progress, rehearsal=trial.purpose == Purpose.REHEARSAL)
            elif self._engine.can("in client") or "driver" in target:
                on_cpus = () if plan.system.dsn is not None else plan.system.server_cpus or ()
                child = ChildPlacement(self._folder / _CHILD_LOG, on_cpus, session.within())
                result = unpacked(drive_in_child(compiled, progress, child))
            else:
                result = unpacked(_core.drive(compiled, progress))
        if stall is not None and stall.error is not None:
            raise stall.error
        return result

    def _checks(self, before: Any, summary: Mapping[str, Any]) -> tuple[Check, ...]:
        """Runs the workload's checks and the user's own check. `before`: what the workload read before the trial."""
        session, workload, options = self._session, self._workload, self._plan.choice.options
        cut, combined = self._options.power_cut, self._options.combine(summary)
        found: tuple[Check, ...] = ()
        if self._has_data and cut is not None:
            after_cut = {**summary, power.SUMMARY: True}
            found = power.checks_after_power_cut(cut.how, lambda: workload.check(session, options, before, after_cut))
        elif self._has_data and combined is not None:
            with self._options.while_checking(), _limited(session):
                found = workload.check(session, options, before, combined)
        with _limited(session):
            return (*found, *_own_check(session, self._plan.choice.data))

    @property
    def _has_data(self) -> bool:
        """Whether the workload has data that can be checked."""
        return self._workload.dataset(self._session.engine, self._plan.choice.options) is not None

    @property
    def _variables(self) -> dict[str, str]:
        return {**self._workload.variables(self._plan.choice.options), **self._plan.choice.defines}


def _delayed(session: Session, system: System) -> AbstractContextManager[None]:
    """Adds the network latency of the system between clients and server. Data, checks and observers use direct
    connections."""
    if system.latency_s is None:
        return nullcontext()
    assert isinstance(session, DelayedSession), "`lab.build` refuses network latency for engines without sockets"
    return session.delayed(system.latency_s, _relay_cpus(system, os.sched_getaffinity(0)))


def _relay_cpus(system: System, available: Collection[int]) -> tuple[int, ...]:
    """Returns the CPUs of the relay. If server or client are pinned, these are the CPUs that neither of them uses. If
    there are none, the relay shares the client's CPUs. If neither is pinned, returns an empty tuple, and the relay may
    use any CPU."""
    if not (system.server_cpus or system.client_cpus):
        return ()
    server = set(system.server_cpus or () if system.dsn is None else ())
    neither = set(available) - server - set(system.client_cpus or ())
    return tuple(sorted(neither or set(available) - server))


def unpacked(result: DriveResult) -> Driven:
    """Converts the core's result."""
    return Driven(
        summary=msgspec.json.decode(result.summary, type=dict[str, Any]),
        timeline=result.timeline,
        seconds=result.seconds,
        histograms=result.histograms,
        samples=result.samples,
    )


STALLED_S = 60.0
"""If a trial without a time limit finishes no transaction for this number of seconds, it checks that its server still
answers."""


def _stop_stalled(stall: Stall, progress: _core.Progress) -> None:
    if stall.is_over(progress.transactions + progress.errors):
        progress.stop()


CHECK_S = 3600.0
"""Time limit in seconds of each query of a workload's checks."""


def _limited(session: Session) -> AbstractContextManager[None]:
    return session.limited(CHECK_S) if isinstance(session, RemoteSession) else nullcontext()


_FALSE = ("0", "f", "false")


def _own_check(session: Session, data: OwnData | None) -> tuple[Check, ...]:
    """Runs the user's query, which must return true after every trial. An error counts as false."""
    if data is None or not data.check:
        return ()
    name = f"check ({shortened(data.check)})"
    try:
        rows = session.query(data.check)
    except FailureError as error:
        return (checked(name, "true", f"error: {error.cause}"),)
    return (checked(name, "true", *_answer(session, rows)),)


def _answer(session: Session, rows: list[Row]) -> tuple[str, bool]:
    """Returns the result in words, and whether it is true."""
    if len(rows) != 1 or len(rows[0]) != 1:
        return f"{len(rows)} rows of {len(rows[0]) if rows else 0} columns instead of one value", False
    value = rows[0][0]
    if value is None:
        return "null", False
    true = engines.get(session.engine).traits.dialect.true
    if value in true:
        return "true", True
    return ("false" if value in _FALSE else f"{shortened(value)!r}, which is neither true nor false"), False


def _last_words(session: Session) -> str:
    """Returns the engine's last message. Waits for a short time, because connections break before the process has
    written the message."""
    deadline = time.monotonic() + _WORDS_PATIENCE_S
    while not (words := session.last_words()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return words
