"""Drives one trial: reads counters, runs the measured window of the core or of the workload itself, and then checks the
results."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ironbench import _core, engines, workloads
from ironbench.engines.administration import Insight
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
from ironbench.model.system import Load, System, Trial
from ironbench.printer import Printer
from ironbench.trial.drive import before as preparing
from ironbench.trial.drive import caches, power, profile
from ironbench.trial.drive.live import LiveFile
from ironbench.trial.drive.power import PowerCut
from ironbench.trial.drive.run import Driver, Follow, Looks, ProgressDisplay, ProgressLines, Tasks, compiled_plan, run
from ironbench.trial.drive.statements import statements
from ironbench.trial.drive.work import StartedTrial, run_work
from ironbench.workloads.base import checked

if TYPE_CHECKING:
    from ironbench._core import DriveResult, Progress


_WORDS_PATIENCE_S = 1.0
Show = Callable[[float, str], None]
Drives = Callable[[bytes, Load, "Progress", str], Driven]
"""Type of `Driver.drive` and `Driver.rehearse`."""


@dataclass(frozen=True, slots=True)
class DriveOptions:
    """Options of a trial that do not affect its measured window."""

    title: str = ""
    """Title of the progress bar."""
    quiet_s: float | None = None
    """Maximum wait for an idle machine, see `before.at_last`."""
    cut: PowerCut | None = None
    """A power cut after the measured window and before the checks. If it is None, the power is not cut."""
    checking: Callable[[], AbstractContextManager[None]] = nullcontext
    """Context manager in which the checks run if there is no power cut."""
    follow: Follow = lambda phase, elapsed_s: None
    chill: preparing.Chill = caches.chill
    driver: Driver | None = None
    """Object that drives the trial. If it is None, this process drives the trial."""
    live: LiveFile | None = None
    """File in which the live state of the trial is published."""
    together: Callable[[Mapping[str, Any]], Mapping[str, Any] | None] = lambda summary: summary
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
    surroundings: DriveOptions = DriveOptions(),
) -> Driven:
    """Drives a trial from start to end. If the engine fails, the result contains the failure.

    `sources` is called when the engine is in the state in which it will be measured.
    """
    started, starved = datetime.now(UTC).isoformat(timespec="seconds"), OutOfMemoryKills()
    with scratch.folder() as folder:
        begun = StartedTrial(started, folder)
        driving = _Drive(plan, session, trial, begun, surroundings.driver)
        try:
            with checked_answers(plan.system.dsn is not None):
                result = driving.whole(sources, printer, surroundings)
            broken = not result.alive or result.summary.get("aborted", False)
            return replace(result, last_words=_joined(starved, result.last_words)) if broken else result
        except IronbenchError as error:
            printer.error(error)
            alive = session.alive() and not isinstance(error, EngineDiedError)
            words = _joined(starved, "" if alive else _last_words(session))
            log, inside = _read(begun.log), driving.inside
            return Driven(started, alive, failure=error.note, last_words=words, log=log, inside_server=inside)


def _joined(starved: OutOfMemoryKills, words: str) -> str:
    """Returns the kernel's messages, followed by the engine's message about the same event."""
    return "; ".join(filter(None, (starved.words(), words)))


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


class _Drive:
    def __init__(self, plan: Plan, session: Session, trial: Trial, begun: StartedTrial, driver: Driver | None) -> None:
        self._plan, self._session, self._trial, self._begun, self._driver = plan, session, trial, begun, driver
        self._workload, self._options = workloads.get(plan.choice.workload), plan.choice.options
        self._scripts = self._workload.scripts(session.engine, plan.choice)
        self._seed = trial_seed(trial.cell.load.seed, trial, len(plan.trials))
        self.inside = NOTHING
        """The server's statistics collected so far."""

    def whole(self, sources: Callable[[], Iterable[Source]], printer: Printer, around: DriveOptions) -> Driven:
        """Prepares, drives and checks the trial."""
        plan, session, trial, workload = self._plan, self._session, self._trial, self._workload
        # There is nothing to check if the workload has no data.
        has_data = workload.dataset(session.engine, self._options) is not None
        alone = trial.purpose == Purpose.SWEEP and len({one.cell.name for one in plan.trials}) == 1
        what = "trial" if alone else trial.purpose
        title = around.title or f"{plan.system.label}  {trial.cell.name}  {what} {trial.block + 1}"
        with printer.bar(title) as show:
            workload.set_up(session, self._options)
            ready = preparing.engine_ready(plan, session, trial, lambda: _rehearsed(self._rehearse()), around.by_clock)
            before = workload.before(session, self._options) if has_data or workload.looks_before else None
            self.inside = self._begun_inside()
            ready = preparing.at_last(ready, session, trial.cell.load, around.quiet_s, around.chill)
            looks = [ProgressLines(printer.say, plan.progress_s).look] if plan.progress_s else []
            looks += [around.live.look] if around.live else []
            load = replace(trial.cell.load, seed=self._seed)
            drives = None if self._driver is None else self._driver.drive
            request = profile.of_trial(plan, trial)
            profiler = profile.started(request, session) if request is not None else None
            result = self._window(
                trial, load, lambda: (*sources(), *ready.sources), show, looks, around.follow, drives=drives
            )
            if profiler is not None:
                result = replace(result, profile=profile.stopped(profiler, result.summary))
        alive = session.alive()
        ended = alive and not result.summary["aborted"]
        whole = alive and not result.summary["aborted"] and not result.summary["cut_short"]
        protocol = engines.get(session.engine).protocol(trial.cell.load.protocol)
        doubts = tuple(
            note(workload.caution, text=text) for text in workload.cautions(session.engine, plan.choice, protocol)
        )
        figures = workload.measured(session, self._options, before, result.summary) if whole else {}
        self.inside = self._ended_inside(result) if alive else self.inside
        prepared = preparing.after(ready, session) if alive else ready.prepared
        checks: tuple[Check, ...] = ()
        done = around.together(result.summary) if ended else None
        if has_data and ended and around.cut is None and done is not None:
            with around.checking(), _limited(session):
                checks = workload.check(session, self._options, before, done)
        elif ended and around.cut is not None:
            survived = power.cut(session, around.cut, self._seed)
            prepared = prepared.merge(survived.conditions(), survived.warnings())
            result = replace(result, power_cut=True)
            figures = {**figures, **survived.metrics()}
            summary = {**result.summary, power.SUMMARY: True}
            if has_data:
                checks = power.held(around.cut.how, lambda: workload.check(session, self._options, before, summary))
        if ended:
            with _limited(session):
                checks = (*checks, *_own_check(session, plan.choice.data))
        return replace(
            result,
            alive=alive,
            scripts={script.name: script.text for script in self._scripts},
            metrics={**result.metrics, **figures},
            checks=(*result.checks, *checks),
            last_words="" if alive else _last_words(session),
            counts=workload.counts,
            inside_server=self.inside,
            prepared=prepared.merge(result.prepared.conditions, (*doubts, *result.prepared.warnings)),
            log=_read(self._begun.log),
        )

    def _begun_inside(self) -> ServerStatistics:
        """Starts collecting the server's statistics and gets query plans. Must be called before the caches are emptied,
        because planning reads data. An error of the server in this step does not end the trial; driving the trial will
        show the problem."""
        if not self._plan.observe:
            return NOTHING
        load = self._trial.cell.load
        protocol = engines.get(self._session.engine).protocol(load.protocol)
        asked = statements(self._scripts, self._variables, protocol, self._seed)
        asked = (*asked, *self._workload.commands(self._options))
        try:
            return self._insight.begin(self._session, asked, self._plan.system.dsn is None)
        except IronbenchError as error:
            return ServerStatistics(missing=(NotShown("Server statistics of the trial", error.cause),))

    def _ended_inside(self, result: Driven) -> ServerStatistics:
        begun, window_s = self.inside, float(result.summary.get("elapsed_s") or 0.0)
        if not self._plan.observe or window_s <= 0:
            return begun
        samples = {name: [Sample(t_s, raw) for t_s, raw in taken] for name, taken in result.samples.items()}
        try:
            return self._insight.end(self._session, begun, samples, window_s)
        except IronbenchError as error:
            why = NotShown("Server statistics of the trial", error.cause)
            return replace(begun, missing=(*begun.missing, why))

    @property
    def _insight(self) -> Insight:
        return engines.get(self._session.engine).administration.insight

    @property
    def _variables(self) -> dict[str, str]:
        return {**self._workload.variables(self._options), **self._plan.choice.defines}

    def _rehearse(self) -> Driven:
        rehearsal = preparing.rehearsal(self._trial)
        seed = trial_seed(self._trial.cell.load.seed, rehearsal, len(self._plan.trials))
        drives = None if self._driver is None else self._driver.rehearse
        return self._window(rehearsal, replace(rehearsal.cell.load, seed=seed), tuple, lambda *_: None, drives=drives)

    def _window(
        self,
        trial: Trial,
        load: Load,
        sources: Callable[[], Iterable[Source]],
        show: Show,
        looks: Looks = (),
        follow: Follow = lambda phase, elapsed_s: None,
        drives: Drives | None = None,
    ) -> Driven:
        """Runs the measured window. The core drives the load, or the workload does so itself (`drives`). If the system
        has added network latency, it is in effect during the window."""
        plan, session = self._plan, self._session
        with _delayed(session, plan.system):
            if self._workload.drives:
                return run_work(plan, session, load, sources, show, self._begun, follow)
            return self._driven(trial, load, sources, show, looks, follow, drives)

    def _driven(
        self,
        trial: Trial,
        load: Load,
        sources: Callable[[], Iterable[Source]],
        show: Show,
        looks: Looks,
        follow: Follow,
        drives: Drives | None,
    ) -> Driven:
        plan, session, workload = self._plan, self._session, self._workload
        if (units := workload.units(self._options)) is not None:
            load = replace(load, transactions=-(-units // load.clients))
        work = workload.core_work(session.engine, self._options)
        tasks = Tasks(self._scripts, self._variables, work, workload.jobs(session, self._options, load))
        reconnect, bind_back = workload.reconnect(self._options) or load.reconnect, workload.binds_back(self._options)
        retried = engines.get(session.engine).traits.duplicate_key if workload.retries_duplicate_keys else ()
        tasks = replace(tasks, reconnect=reconnect, bind_back=bind_back, retried_errors=retried)
        sampled = tuple(sources())
        # `target` is called last. A library engine closes its own connection then, because the locks of this connection
        # would block the clients.
        target = session.target(load.protocol, load.io)
        compiled = compiled_plan(target, tasks, load, sampled, plan, trial)
        stall = None
        if load.duration_s is None and isinstance(session, RemoteSession):
            stall = Stall(session.require_answer, STALLED_S)
            looks = [*looks, partial(_stop_stalled, stall)]
        result = self._measured(compiled, target, load, show, looks, follow, drives)
        if stall is not None and stall.error is not None:
            raise stall.error
        return result

    def _measured(
        self,
        compiled: bytes,
        target: Mapping[str, Any],
        load: Load,
        show: Show,
        looks: Looks,
        follow: Follow,
        drives: Drives | None,
    ) -> Driven:
        plan, session = self._plan, self._session
        if drives is not None:
            progress = _core.Progress()
            with ProgressDisplay(progress, load, show, looks, follow):
                return drives(compiled, load, progress, self._begun.at)
        in_child = engines.get(session.engine).can("in client") or "driver" in target
        on_cpus = () if plan.system.dsn is not None else plan.system.server_cpus or ()
        child = ChildPlacement(self._begun.log, on_cpus, session.within()) if in_child else None
        return unpacked(run(compiled, load, show, child, looks, follow), self._begun.at)


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


def unpacked(result: DriveResult, started: str) -> Driven:
    """Converts the core's result. `started`: time of day, ISO 8601."""
    return Driven(
        started,
        alive=True,
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


def _rehearsed(result: Driven) -> None:
    """Raises FailureError if a rehearsal failed, because the trial would also fail."""
    summary = result.summary
    if summary["aborted"]:
        raise FailureError("warm-up pass", summary["cause"] or "the workload ended early")
    if summary["cut_short"]:
        raise KeyboardInterrupt


def _read(log: Path) -> bytes:
    return log.read_bytes() if log.exists() else b""
