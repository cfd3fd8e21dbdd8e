"""The way of the data: plan → prepare → load → drive + observe → record."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial

from ironbench import devices, engines, load, workloads
from ironbench.analyse import curve
from ironbench.devices.mounting import NO_DEVICES, Devices
from ironbench.errors import IronbenchError
from ironbench.experiment import best_load, freeze, peak, schedule, warmup
from ironbench.experiment.data import Data
from ironbench.experiment.pace import Allowance, Pace
from ironbench.experiment.trial import Bench, attempt, measure
from ironbench.load import Loaded, restore
from ironbench.model.plan import Plan
from ironbench.model.prepared import NOTHING, Prepared
from ironbench.model.record import Record, Status
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session
from ironbench.model.system import Setup, System, Trial
from ironbench.printer import Printer
from ironbench.record import Store
from ironbench.record.judge import STOPPED_ON_ERROR
from ironbench.record.labs import LabDirectory


def run(plan: Plan, secrets: Secrets, store: Store, printer: Printer) -> list[Record]:
    """Starts the engine, loads the data once, measures every trial in order, then the peak afresh."""
    with (
        devices.mounted(plan) as storage,
        engines.running(plan.system, secrets, plan.most_clients) as session,
        ExitStack() as stack,
    ):
        stack.callback(_say_what_stays, session, plan.system, printer)
        wanted = freeze.rights_of(Setup(plan.trials[0].cell, plan.system, plan.choice))
        engines.get(session.engine).administration.require_rights(session, wanted)
        loaded = load.ready(session, plan, printer)
        storage.pace(model=True)

        def measuring(trials: Sequence[Trial], earlier: Sequence[Record], said: Prepared = NOTHING) -> list[Record]:
            return measured(plan, session, loaded, trials, store, printer, earlier, said, storage)

        if plan.search:
            tried, best = best_load.searched(plan, plan.search, measuring, partial(over, session), printer)
        else:
            tried = measuring(plan.trials, ())
            best = curve.peak(tried)
        if over(session, tried) or storage.death():
            return tried
        return tried + measuring(plan.confirmation_trials(best), tried, best_load.told(plan.search, tried))


def _say_what_stays(session: Session, system: System, printer: Printer) -> None:
    """Of a server of others, however the run ended."""
    if system.dsn is not None:
        with suppress(IronbenchError):  # one that died keeps what it has
            if words := engines.get(session.engine).administration.made(session).words:
                kept = f"left there: {words}, so that the next run need not load"
                printer.say(f"{kept}; ironbench cleanup --dsn '{system.dsn}' removes all of it")


def conduct(
    secrets: Mapping[str, Secrets],
    directory: LabDirectory,
    printer: Printer,
    known: Prepared = NOTHING,
    forgiven: Collection[str] = (),
    traces: str = "",
) -> list[Record]:
    """Measures every trial that has no record yet, in order and stage after stage, until the findings decide.

    `known`: what is to be said of every trial; `forgiven`: failed records that do not count; `traces`: directory for
    what emulated devices are asked, if that is wanted. The caller holds the directory, in which the lab has begun.
    UnwrittenError when a record cannot be kept, FailureError when trial after trial fails.
    """
    before, lab = directory.records(), directory.lab()
    if schedule.next_trial(directory, before, forgiven) is None:
        return before
    allowance = Allowance(lab.method.budget_s)
    bench = Bench(lab, secrets, directory.store, Data(lab, secrets, printer), printer, known, traces)
    allowance.ready()
    fresh: list[Record] = []
    pace = Pace(lab)
    while (due := schedule.next_trial(directory, [*before, *fresh], forgiven, allowance.holds)) is not None:
        records = [*before, *fresh]
        trial, said = _before_it(directory, due, records, forgiven)
        planned_s = lab.estimate_s * max(0.0, 1.0 - allowance.passed / max(1, len(lab.trials)))
        quiet_s = min(lab.method.quiet_s, allowance.left_s(planned_s))
        fresh.append(attempt(bench, trial, said, pace.title(trial, records), quiet_s))
        if fresh[-1].status is Status.CUT_SHORT:
            break
        schedule.refuse_futile(lab, fresh)
        allowance.passed += 1
    theirs = {setup.system.dsn: setup for setup in lab.setups if setup.system.dsn and not setup.skipped}
    for setup in theirs.values():
        with (
            suppress(IronbenchError),
            engines.running(setup.system, secrets.get(setup.origin, Secrets()), 1) as session,
        ):
            _say_what_stays(session, setup.system, printer)
    if allowance.said:
        printer.say(allowance.said)
    return [*before, *fresh]


def _before_it(
    directory: LabDirectory, due: Trial, records: Sequence[Record], forgiven: Collection[str]
) -> tuple[Trial, Prepared]:
    """The trial that is due, or one that must be known before it; and what its record says beside."""
    if (first := peak.missing(directory, records, forgiven)) is not None:
        return first, NOTHING
    lab = directory.lab()
    due = replace(due, cell=lab.setup(due.cell.name).cell)
    cells = [setup.cell for setup in lab.setups if not setup.skipped]
    piloted = lab.setup(lab.setup(due.cell.name).origin).cell
    pilot = warmup.missing(cells, records)
    trial, said = warmup.applied(pilot or due, records, directory.store, piloted)
    rated = peak.said(trial, directory)
    return trial, said.also(rated.conditions, rated.warnings)


def measured(
    plan: Plan,
    session: Session,
    loaded: Loaded,
    trials: Sequence[Trial],
    store: Store,
    printer: Printer,
    earlier: Sequence[Record] = (),
    said: Prepared = NOTHING,
    storage: Devices = NO_DEVICES,
) -> list[Record]:
    """The trials in order, each cell's pilot before them, up to one after which there is no going on.

    `said`: what is to be said of every one of them.
    """
    dataset = workloads.get(plan.choice.workload).dataset(session.engine, plan.choice.options)
    records: list[Record] = []
    waiting = list(reversed(trials))
    while waiting:
        known = [*earlier, *records]
        trial = warmup.missing([waiting[-1].cell], known) or waiting.pop()
        settled = restore.untouched(session, plan.system, trial.cell.load, plan.choice, printer)
        settled |= restore.without_garbage(session, dataset) if dataset else {}
        trial, warmed = warmup.applied(trial, known, store)
        prepared = said.also(warmed.conditions, warmed.warnings).also(settled)
        records.append(measure(plan, session, loaded, trial, store, printer, prepared, storage=storage))
        if over(session, records) or storage.death():
            break
    return records


def over(session: Session, records: Sequence[Record]) -> bool:
    """Whether the user interrupted the last trial, its first error ended it, or the engine did not survive it."""
    last = records[-1]
    stopped = any(warning.code == STOPPED_ON_ERROR for warning in last.warnings)
    return last.status is Status.CUT_SHORT or stopped or not session.alive()
