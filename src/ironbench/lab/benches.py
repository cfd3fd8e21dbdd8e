"""Measures trials and stores their records. A bench is the environment of trials, and starts the engine once for all
trials or again for each trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from ironbench import devices, engines, workloads
from ironbench.devices.mounting import Devices
from ironbench.errors import IronbenchError, UnwrittenError
from ironbench.host import data_dirs
from ironbench.lab import server_control, upkeep
from ironbench.lab.data import LabData, protect_directory
from ironbench.lab.schedule import NextTrial
from ironbench.lab.server_watch import of_trial
from ironbench.lab.upkeep import Upkeep
from ironbench.model.driven import Driven
from ironbench.model.lab import Lab
from ironbench.model.note import Note
from ironbench.model.plan import Plan, record_id
from ironbench.model.purpose import Purpose
from ironbench.model.record import STOPPED_ON_LOSS, Record, Status
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session
from ironbench.model.system import Setup, Trial, connections
from ironbench.model.trial_notes import TrialNotes
from ironbench.printer import Printer
from ironbench.records import Store, make
from ironbench.records.judge import STOPPED_ON_ERROR
from ironbench.report import wording
from ironbench.trial import observe
from ironbench.trial.cluster.worker_pool import WorkerPool
from ironbench.trial.drive.drive_trial import DriveOptions, drive
from ironbench.trial.drive.live import LiveFile
from ironbench.trial.drive.power import NOTHING_AT_STAKE, PowerCut
from ironbench.trial.load import Loaded, own, restore
from ironbench.trial.load.databases import TrialDatabases
from ironbench.trial.load.source import DataSource


@dataclass(frozen=True, slots=True)
class OpenResources:
    """Resources that stay open from the first trial of an experiment to its last."""

    store: Store
    printer: Printer
    upkeep: Upkeep
    pool: WorkerPool
    live: LiveFile


def measure(
    plan: Plan, session: Session, loaded: Loaded, due: NextTrial, resources: OpenResources, storage: Devices
) -> Record:
    """Runs one trial and stores its record. `storage`: emulated devices of the engine."""
    how, store, printer, live = due.trial.cell.load, resources.store, resources.printer, resources.live
    live.begin(due.trial, due.title)
    watching = of_trial(plan, session, due.trial, store)
    cut = PowerCut(plan.crash, storage) if plan.crash else None
    control = server_control.of_trial(session, plan.system, how)
    workload = workloads.get(plan.choice.workload)
    in_parts = workload.in_parts(session.engine, plan.choice.options)
    driven_by = resources.pool.of(how) if in_parts else None
    options = DriveOptions(due.title, due.quiet_s, cut, storage.at_once, watching.follow, driver=driven_by, live=live)
    if control is not None:
        options = replace(options, drop_caches=lambda _: control.drop_caches())
    try:
        with control or nullcontext():
            driven = watching.watched(drive(plan, session, due.trial, watching.sources, printer, options))
    finally:
        watching.close()
    if started_unix_s := driven.summary.get("started_unix_s"):
        storage.measured(started_unix_s, driven.summary["elapsed_s"])
    driven = replace(driven, storage_died=storage.death())
    prepared = due.notes.merge(storage.conditions())
    if control is not None:
        driven, prepared = control.judged(driven), control.noted(prepared)
    connected = workload.connections(how.clients, plan.choice.options)
    observation, budget = observe.observed(driven, how, connected)
    record = make.keep(
        store,
        plan,
        due.trial,
        driven,
        prepared,
        loaded=loaded,
        observation=observation,
        budget=budget,
        session=session,
    )
    if record.power_cut:
        printer.say(f"  power: {record.conditions['power']}")
        for one in record.warnings:
            if one.code == NOTHING_AT_STAKE:
                printer.say(f"  warning: {wording.text(one)}")
    if not record.status.comparable and not driven.failure:  # another failure was already reported
        printer.say(f"  {record.status.word}: {wording.cause(record)}")
        for one in record.warnings:
            if one.code in (STOPPED_ON_ERROR, STOPPED_ON_LOSS):
                printer.say(f"  {wording.text(one)}")
    return record


@dataclass(frozen=True, slots=True)
class SharedEngineBench:
    """A bench whose engine keeps running. A trial uses the data that the previous trial left behind. Dead tuples are
    removed before each trial."""

    plan: Plan
    session: Session
    loaded: Loaded
    resources: OpenResources
    storage: Devices

    def measure(self, due: NextTrial) -> Sequence[Record]:
        plan, session = self.plan, self.session
        dataset = workloads.get(plan.choice.workload).dataset(session.engine, plan.choice.options)
        settled = restore.untouched(session, plan.system, due.trial.cell.load, plan.choice, self.resources.printer)
        settled |= restore.without_dead_tuples(session, dataset) if dataset else {}
        due = replace(due, notes=self.resources.upkeep.taken(due.notes.merge(settled)))
        return [measure(plan, session, self.loaded, due, self.resources, self.storage)]

    def over(self, record: Record) -> bool:
        """Returns whether the run must end after this record. This is the case if the trial was interrupted, if an
        error stopped it, or if the engine or its devices died."""
        gone = not self.session.alive() or bool(self.storage.death())
        return record.status is Status.CUT_SHORT or record.warned(STOPPED_ON_ERROR) or gone


@dataclass(slots=True)
class RestoredDataBench:
    """A bench for runs on the user's own data: each trial gets freshly restored data and a new engine process."""

    plan: Plan
    secrets: Secrets
    source: DataSource
    databases: TrialDatabases
    resources: OpenResources
    storage: Devices
    _over: bool = False
    _begun: bool = False

    def measure(self, due: NextTrial) -> Sequence[Record]:
        plan, storage = self.plan, self.storage
        setup = Setup(due.trial.cell, plan.system, plan.choice)
        storage.set_model_timing(on=False)
        conditions = restore.restore_data(setup, self.source, self.databases)
        with engines.running(self.databases.system(setup), self.secrets, most_connections(plan)) as session:
            self._begin(session, conditions)
            storage.set_model_timing(on=True)
            bench = SharedEngineBench(plan, session, self.source.loaded, self.resources, storage)
            records = bench.measure(replace(due, notes=due.notes.merge(conditions)))
            self._over = any(map(bench.over, records))
        return records

    def _begin(self, session: Session, conditions: Mapping[str, str]) -> None:
        """Reports the data and validates the check of the user's data, before the first trial. Raises InputError if the
        check is invalid."""
        protect_directory(self.plan.system.layout)
        if self._begun:
            return
        self.resources.printer.say(f"data: {conditions['data']}, {conditions['restored']}")
        own.require_check(session, self.plan.choice.data)
        self._begun = True

    def over(self, record: Record) -> bool:
        return self._over


@dataclass(frozen=True, slots=True)
class FreshEngineBench:
    """A bench for labs: each trial gets restored data and a new engine process."""

    lab: Lab
    secrets: Mapping[str, Secrets]
    data: LabData
    resources: OpenResources
    known: TrialNotes
    """Notes that are added to every record."""
    traces: str
    """Directory for traces of emulated devices; see `Plan.traces`."""

    def over(self, record: Record) -> bool:
        return record.status is Status.CUT_SHORT

    def measure(self, due: NextTrial) -> Sequence[Record]:
        """Restores the data, starts the engine and measures the trial. Errors produce a failed record."""
        lab, trial, record, kept = self.lab, due.trial, None, self.resources.upkeep
        self.resources.live.begin(trial, due.title)
        setup = lab.setup(trial.cell.name)
        plan = Plan(lab.series, setup.system, setup.choice, (trial,), 0, traces=self.traces, crash=lab.method.crash)
        plan = replace(plan, tags=lab.tags, profile=lab.method.profile)
        notes = self.known.merge(due.notes.conditions, due.notes.warnings)
        prepared = replace(notes, search_result=due.notes.search_result)
        secrets = self.secrets.get(setup.origin, Secrets())
        try:
            upkeep.before_trial(lab, kept, trial)
            prepared = kept.taken(prepared)
            with devices.mounted(plan, record_id(plan.series, trial)) as storage:
                restored = self.data.restored(setup, trial.block)
                prepared = prepared.merge(restored.conditions, restored.warnings)
                with engines.running(self.data.system(setup), secrets, most_clients(lab)) as session:
                    loaded = self.data.loaded(setup)
                    prepared = prepared.merge(
                        restore.untouched(session, setup.system, trial.cell.load, setup.choice, self.resources.printer)
                    )
                    prepared = self.data.settled(setup, session, prepared)
                    storage.set_model_timing(on=True)
                    settled = replace(due, notes=prepared)
                    record = measure(plan, session, loaded, settled, self.resources, storage)
            lasting = not setup.system.layout.devices  # an emulated device is removed after its trial
            # pilots, searches and other additional trials belong to no block, so no trial continues with their data
            if record.status.comparable and lasting and trial.purpose == Purpose.LAB:
                self.data.kept(setup, trial.block)
        except UnwrittenError:
            raise
        except IronbenchError as error:
            # The trial was recorded, but the engine could not be stopped. No other trial may start on this machine.
            if record is not None:
                raise
            self.resources.printer.error(error)
            return [failed(plan, trial, self.resources.store, error.note, kept.taken(prepared))]
        finally:
            if lab.every_command and setup.system.layout.data:
                # One of the following cleanup commands may unmount the file system of the directory, so this process
                # must not use it.
                data_dirs.release(Path(setup.system.layout.data))
            kept.leave_trial()
        return [record]


def failed(plan: Plan, trial: Trial, store: Store, cause: Note, prepared: TrialNotes) -> Record:
    """Stores a record with status "failed" for a trial that could not run."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    driven = Driven(now, failure=cause)
    return make.keep(store, plan, trial, driven, prepared)


def most_connections(plan: Plan) -> int:
    """Returns how many connections a run's engine must accept at the same time. Clients and internal sessions are
    included."""
    workload, options = workloads.get(plan.choice.workload), plan.choice.options
    loads = [trial.cell.load for trial in plan.trials]
    return max(connections(plan.system, load, workload.connections(load.clients, options)) for load in loads)


def most_clients(lab: Lab) -> int:
    """Returns how many connections each engine of a lab must accept. The number is the same for all configurations, so
    that they differ only in the factors."""
    most = 1
    for setup in lab.setups:
        search = setup.search.high if setup.search and setup.search.of == "clients" else 0
        load, workload = setup.cell.load, workloads.get(setup.choice.workload)
        of_clients = workload.connections(max(search, load.clients), setup.choice.options)
        most = max(most, connections(setup.system, load, of_clients))
    return most
