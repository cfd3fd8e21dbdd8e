"""Drives one trial: counters before, the timed window of the core or of the workload itself, checks after."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ironbench import engines, workloads
from ironbench.drive import before as preparing
from ironbench.drive import computed, power
from ironbench.drive.plan import compiled_plan
from ironbench.drive.power import PowerCut
from ironbench.drive.run import Lines, run
from ironbench.drive.work import worked
from ironbench.errors import EngineDiedError, FailureError, IronbenchError
from ironbench.machine.starved import Starved
from ironbench.model.driven import Driven
from ironbench.model.observation import Source
from ironbench.model.plan import Plan
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.model.system import Trial
from ironbench.printer import Printer
from ironbench.process import scratch

if TYPE_CHECKING:
    from ironbench._core import DriveResult

_WORDS_PATIENCE_S = 1.0
Show = Callable[[float, str], None]


def drive(
    plan: Plan,
    session: Session,
    trial: Trial,
    sources: Callable[[], Iterable[Source]],
    printer: Printer,
    title: str = "",
    quiet_s: float | None = None,
    cut: PowerCut | None = None,
    checking: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Driven:
    """One trial from start to end. An engine that fails is not an exception: the result says so.

    `sources` are asked for when the engine is as it will be measured; `quiet_s`: see `before.at_last`; `cut`: the power
    goes after the measured time, and the checks judge what is left; `checking`: in which they are made otherwise.
    """
    title = title or f"{plan.system.label}  {trial.cell.name}  {trial.purpose} {trial.block + 1}"
    started, starved = datetime.now(UTC).isoformat(timespec="seconds"), Starved()
    with scratch.folder() as folder:
        log = folder / "child.log"
        try:
            result = _driven(plan, session, trial, sources, printer, title, started, log, quiet_s, cut, checking)
            broken = not result.alive or result.summary.get("aborted", False)
            return replace(result, last_words=_joined(starved, result.last_words)) if broken else result
        except IronbenchError as error:
            printer.error(error)
            alive = session.alive() and not isinstance(error, EngineDiedError)
            words = _joined(starved, "" if alive else _last_words(session))
            return Driven(started, alive, failure=str(error), last_words=words, log=_read(log))


def _joined(starved: Starved, words: str) -> str:
    """What the kernel did, then what the engine said of it."""
    return "; ".join(filter(None, (starved.words(), words)))


def trial_seed(seed: int, trial: Trial, trials: int) -> int:
    """Every trial draws its own random numbers, the same ones for the same seed. `trials`: how many are planned.

    The only trial of a run draws those of the seed itself, as pgbench with --random-seed does.

    Trials that all drew the same would hit the same rows again and again: caches would flatter the later ones, and a
    workload that inserts and deletes at random would push the same customers to their limits. In a lab all cells of a
    block draw the same: they are compared with each other, each from the same data, so that what the numbers happen to
    be cancels (common random numbers: Law, "Simulation Modeling and Analysis", section 11.2).
    """
    if trials == 1 and trial.purpose == "sweep":
        return seed
    cell = "" if trial.purpose == "lab" else trial.cell.name
    text = f"{seed} {cell} {trial.purpose} {trial.block}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1


def _driven(
    plan: Plan,
    session: Session,
    trial: Trial,
    sources: Callable[[], Iterable[Source]],
    printer: Printer,
    title: str,
    started: str,
    log: Path,
    quiet_s: float | None,
    cut: PowerCut | None,
    checking: Callable[[], AbstractContextManager[None]],
) -> Driven:
    workload, options, load = workloads.get(plan.choice.workload), plan.choice.options, trial.cell.load
    scripts = workload.scripts(session.engine, plan.choice)
    has_data = workload.dataset(session.engine, options) is not None  # else there is nothing to hold to any rule

    def driving(trial: Trial, sources: Iterable[Source], show: Show, lines: Lines | None = None) -> Driven:
        own = replace(trial.cell.load, seed=trial_seed(load.seed, trial, len(plan.trials)))
        if workload.drives:
            return worked(plan, session, own, sources, log.parent, show, started)
        if (units := workload.units(options)) is not None:
            own = replace(own, transactions=-(-units // own.clients))
        # `target` last: a library engine closes its own connection then, so that none of its locks is in the way.
        compiled = compiled_plan(
            session.target(load.protocol, load.io),
            scripts,
            {**workload.variables(options), **plan.choice.defines},
            own,
            sources,
            plan.system.client_cpus or (),
            workload.core_work(session.engine, options),
        )
        in_child = engines.get(session.engine).can("in client")
        cpus = plan.system.server_cpus
        return _unpacked(run(compiled, own, in_child, cpus, log, show, session.within(), lines), started)

    with printer.bar(title) as show:
        ready = preparing.ready(
            plan, session, trial, lambda: _rehearsed(driving(preparing.rehearsal(trial), (), lambda *_: None))
        )
        before = workload.before(session, options) if has_data else None
        ready = preparing.at_last(ready, session, load, quiet_s)
        lines = Lines(printer.say, plan.progress_s) if plan.progress_s else None
        result = computed.over(session, lambda: driving(trial, (*sources(), *ready.sources), show, lines))
    alive = session.alive()
    checkable = has_data and alive and not result.summary["aborted"]
    whole = alive and not result.summary["aborted"] and not result.summary["cut_short"]
    figures = workload.measured(session, options, before, result.summary) if whole else {}
    prepared = preparing.after(ready, session) if alive else ready.prepared
    checks: tuple[Check, ...] = ()
    if checkable and cut is None:
        with checking():
            checks = workload.check(session, options, before, result.summary)
    elif checkable and cut is not None:
        prepared = prepared.also(power.cut(session, cut, trial_seed(load.seed, trial, len(plan.trials))))
        summary = {**result.summary, power.SUMMARY: True}
        checks = power.held(cut.how, lambda: workload.check(session, options, before, summary))
    return replace(
        result,
        alive=alive,
        scripts={script.name: script.text for script in scripts},
        metrics={**result.metrics, **figures},
        checks=(*result.checks, *checks),
        last_words="" if alive else _last_words(session),
        prepared=prepared.also(result.prepared.conditions, result.prepared.warnings),
        log=_read(log),
    )


def _unpacked(result: DriveResult, started: str) -> Driven:
    return Driven(
        started,
        alive=True,
        summary=msgspec.json.decode(result.summary, type=dict[str, Any]),
        timeline=result.timeline,
        seconds=result.seconds,
        histograms=result.histograms,
        samples=result.samples,
    )


def _last_words(session: Session) -> str:
    """Connections break before the process is gone and its messages are written: so waits a little for them."""
    deadline = time.monotonic() + _WORDS_PATIENCE_S
    while not (words := session.last_words()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return words


def _rehearsed(result: Driven) -> None:
    """FailureError when a rehearsal came to nothing: the trial would, too."""
    summary = result.summary
    if summary["aborted"]:
        raise FailureError("rehearsal", summary["cause"])
    if summary["cut_short"]:
        raise KeyboardInterrupt


def _read(log: Path) -> bytes:
    return log.read_bytes() if log.exists() else b""
