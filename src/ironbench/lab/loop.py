"""The measurement loop: a schedule chooses the next trial, and a bench measures it, until the schedule is finished."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from io import StringIO
from pathlib import Path
from typing import Protocol

from ironbench import devices, engines, workloads
from ironbench.host import data_dirs, measurement_locks
from ironbench.lab import confirm, freeze, profiling, server_control, server_watch, upkeep
from ironbench.lab.benches import (
    FreshEngineBench,
    OpenResources,
    RestoredDataBench,
    SharedEngineBench,
    most_connections,
)
from ironbench.lab.data import LabData
from ironbench.lab.schedule import BestLoad, Blocks, NextTrial, Schedule, Sweep
from ironbench.lab.slices.turns import InterleavedBench
from ironbench.model.plan import Plan
from ironbench.model.record import Record, Status
from ironbench.model.secrets import Secrets
from ironbench.model.system import Setup
from ironbench.model.trial_notes import NO_NOTES, TrialNotes
from ironbench.printer import Printer
from ironbench.records import Store
from ironbench.records.labs import LabDirectory
from ironbench.trial import load
from ironbench.trial.cluster.worker_pool import WorkerPool
from ironbench.trial.drive.live import LiveFile
from ironbench.trial.load import own, remains, snapshot
from ironbench.trial.load.databases import TrialDatabases
from ironbench.words import counted


class Bench(Protocol):
    """Environment in which trials are measured."""

    def measure(self, due: NextTrial) -> Sequence[Record]:
        """Measures one trial, and any trials interleaved with it. Returns their stored records. Raises
        UnwrittenError."""

    def over(self, record: Record) -> bool:
        """Returns whether the experiment must stop after this trial."""


def measured(schedule: Schedule, bench: Bench, before: Sequence[Record] = ()) -> list[Record]:
    """Runs an experiment and returns all of its records. `before`: records that exist already."""
    records = list(before)
    while (due := schedule.next(records)) is not None:
        fresh = bench.measure(due)
        records += fresh
        if any(map(bench.over, fresh)):
            break
    return records


def run(plan: Plan, secrets: Secrets, store: Store, printer: Printer, before: Sequence[Record] = ()) -> list[Record]:
    """Measures one system: first a sweep or a search, then additional trials of the chosen load. If the user's own data
    are restored for each trial, the engine restarts for each trial; otherwise, it keeps running. `before`: records of
    an interrupted run with the same plan.
    """
    schedule = _schedule(plan, store, printer)
    if before and schedule.next(before) is None:
        return list(before)
    setup = Setup(plan.trials[0].cell, plan.system, plan.choice)
    server_watch.require([plan.system])
    server_control.require([setup], {setup.cell.name: secrets})
    profiling.require_servers(plan.profile, [setup], {setup.cell.name: secrets})
    with ExitStack() as stack:
        stack.enter_context(measurement_locks.shared(printer.say))
        kept = stack.enter_context(upkeep.of_run(plan, printer))
        storage = stack.enter_context(devices.mounted(plan))
        pool = stack.enter_context(WorkerPool(printer))
        live = stack.enter_context(closing(LiveFile(store.directory, plan.series)))
        resources = OpenResources(store, printer, kept, pool, live)
        bench: Bench
        if plan.choice.data is not None and plan.choice.data.imported:
            freeze.require_rights([setup], {setup.cell.name: secrets})
            if plan.system.dsn is not None:
                stack.callback(remains.say_at, setup, secrets, [plan.choice], printer, set())
            source = snapshot.source_ready(setup, secrets, printer)
            databases = stack.enter_context(closing(TrialDatabases()))
            if plan.system.commands and plan.system.layout.data:
                # A cleanup command may unmount the file system of the directory, so this process must not use it.
                stack.callback(data_dirs.release, Path(plan.system.layout.data))
            bench = RestoredDataBench(plan, secrets, source, databases, resources, storage)
        else:
            session = stack.enter_context(engines.running(plan.system, secrets, most_connections(plan)))
            if plan.system.dsn is not None:
                stack.callback(remains.say, session, plan.system.dsn, [plan.choice], printer, set())
            engines.get(session.engine).administration.require_rights(session, freeze.rights_of(setup))
            requirement = workloads.get(plan.choice.workload).requirement(plan.choice.options)
            if plan.system.dsn is not None and requirement:
                requirement.check(session)
            most = max((trial.cell.load for trial in plan.trials), key=lambda load: load.workers)
            loaded = load.data_ready(session, plan, printer, pool.copiers(most))
            if "data" in plan.system.ideal and loaded.rows and not loaded.reused:
                session.restart()  # the engine sizes its cache at startup, by the data that are present
            own.require_check(session, plan.choice.data)
            storage.set_model_timing(on=True)
            how = plan.trials[0].cell.load
            if workloads.get(plan.choice.workload).in_parts(session.engine, plan.choice.options):
                pool.reach(how, session.target(how.protocol, how.io))
            else:
                pool.close()  # the workers were needed only to load the data
            bench = SharedEngineBench(plan, session, loaded, resources, storage)
        records = measured(schedule, bench, before)
        kept.hurried |= any(record.status is Status.CUT_SHORT for record in records[-1:])
        return records


def is_over(plan: Plan, store: Store, before: Sequence[Record]) -> bool:
    """Returns whether these records contain all trials of the run."""
    unheard = StringIO()
    return bool(before) and _schedule(plan, store, Printer(unheard, unheard)).next(before) is None


def nothing_ran(records: Sequence[Record]) -> str:
    """Returns the message for an experiment whose trials were all measured before. The message is shown before the
    report."""
    count = sum(record.status is not Status.CUT_SHORT for record in records)
    return f"{counted(count, 'trial')} already measured; no trial was run"


def _schedule(plan: Plan, store: Store, printer: Printer) -> Schedule:
    return BestLoad(plan, plan.search, store, printer) if plan.search else Sweep(plan, store)


def conduct(
    secrets: Mapping[str, Secrets],
    directory: LabDirectory,
    printer: Printer,
    known: TrialNotes = NO_NOTES,
    forgiven: Collection[str] = (),
    traces: str = "",
) -> list[Record]:
    """Measures the trials of a lab that have no record yet. Proceeds stage by stage until an interim analysis ends the
    lab, or until no stage is left.

    `known`: notes for every record. `forgiven`: ids of failed records to ignore. `traces`: directory for traces of
    emulated devices, or an empty text for no traces. The caller must have locked the lab's directory. Raises
    UnwrittenError if a record cannot be stored, and FailureError if trials fail repeatedly or a command of the lab
    fails.
    """
    before, began_s, spent_s = len(directory.records()), time.monotonic(), 0.0
    while True:
        records = _conducted(secrets, directory, printer, known, forgiven, traces, spent_s)
        if not confirm.start_confirmation(directory, records, printer):
            break
        spent_s = time.monotonic() - began_s
    if len(records) > before:
        remains.say_of_lab(directory.lab(), secrets, printer)
    return records


def _conducted(
    secrets: Mapping[str, Secrets],
    directory: LabDirectory,
    printer: Printer,
    known: TrialNotes,
    forgiven: Collection[str],
    traces: str,
    spent_s: float,
) -> list[Record]:
    """Measures the trials planned so far. `spent_s`: see `Blocks`."""
    before, lab = directory.records(), directory.lab()
    if Blocks(directory, before, forgiven, printer.say).waiting(before) is None:
        return before
    secrets = confirm.secrets_of(lab, secrets)
    with (
        measurement_locks.shared(printer.say),
        upkeep.of_lab(lab, directory.path, printer) as kept,
        WorkerPool(printer) as pool,
        closing(LabData(lab, secrets, printer, pool)) as data,
        closing(LiveFile(directory.path, lab.series)) as live,
    ):
        schedule = Blocks(directory, before, forgiven, printer.say, kept.now, spent_s)
        if not any(_in_parts(setup) for setup in lab.setups):
            pool.close()  # as in `run`, the workers were needed only to load the data
        resources = OpenResources(directory.store, printer, kept, pool, live)
        each = FreshEngineBench(lab, secrets, data, resources, known, traces)
        bench: Bench = each if lab.method.slice_s is None else InterleavedBench(each, directory)
        schedule.ready()
        records = measured(schedule, bench, before)
        kept.hurried |= any(record.status is Status.CUT_SHORT for record in records[-1:])
    if schedule.why:
        printer.say(schedule.why)
    return records


def _in_parts(setup: Setup) -> bool:
    return workloads.get(setup.choice.workload).in_parts(setup.system.engine, setup.choice.options)
