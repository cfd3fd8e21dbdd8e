"""One trial from its data to its record; `run` and labs measure with the same code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ironbench import devices, engines, observe
from ironbench.devices.mounting import NO_DEVICES, Devices
from ironbench.drive.power import PowerCut
from ironbench.drive.trial import drive
from ironbench.errors import IronbenchError, UnwrittenError
from ironbench.experiment.data import Data
from ironbench.load import Loaded, restore
from ironbench.model.driven import Driven
from ironbench.model.lab import Lab
from ironbench.model.observation import Observation
from ironbench.model.plan import Plan
from ironbench.model.prepared import NOTHING, Prepared
from ironbench.model.record import Record
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session
from ironbench.model.system import Setup, Trial
from ironbench.printer import Printer
from ironbench.record import Store, make
from ironbench.record.judge import STOPPED_ON_ERROR


def measure(
    plan: Plan,
    session: Session,
    loaded: Loaded,
    trial: Trial,
    store: Store,
    printer: Printer,
    prepared: Prepared = NOTHING,
    title: str = "",
    quiet_s: float | None = None,
    storage: Devices = NO_DEVICES,
) -> Record:
    """One trial, from driving it to its record in the store. `storage`: what is emulated under the engine."""
    how = trial.cell.load
    driven = drive(
        plan,
        session,
        trial,
        lambda: observe.sources(session, plan.observe, clients=how.clients),
        printer,
        title,
        quiet_s,
        PowerCut(plan.crash, storage) if plan.crash else None,
        storage.at_once,
    )
    if started_unix_s := driven.summary.get("started_unix_s"):
        storage.measured(started_unix_s, driven.summary["elapsed_s"], driven.computed)
    driven = replace(driven, storage_died=storage.death())
    prepared = prepared.also(storage.conditions())
    watched = observe.observed(driven, how)
    record = make.keep(store, plan, session, loaded, trial, driven, watched, prepared)
    if not record.status.comparable and not driven.failure:  # a failure was said when it happened
        printer.say(f"  {record.status.value}: {record.cause}")
        for warning in record.warnings:
            if warning.code == STOPPED_ON_ERROR:
                printer.say(f"  {warning.text}")
    return record


@dataclass(frozen=True, slots=True)
class Bench:
    """What the trials of a lab share."""

    lab: Lab
    secrets: Mapping[str, Secrets]
    store: Store
    data: Data
    printer: Printer
    known: Prepared = NOTHING
    """What is to be said of every trial."""
    traces: str = ""
    """See `Plan.traces`."""


def attempt(bench: Bench, trial: Trial, said: Prepared, title: str, quiet_s: float) -> Record:
    """One attempt at a trial of a lab: data back, an engine of its own, caches, measure, record, stop.

    `said`: what its record shall say beside; `quiet_s`: the longest wait for a quiet machine.

    Whatever prevents the trial makes a failed record.
    """
    setup = bench.lab.setup(trial.cell.name)
    plan = Plan(bench.lab.series, setup.system, setup.choice, (trial,), 0, traces=bench.traces)
    prepared, record = bench.known.also(said.conditions, said.warnings), None
    try:
        with devices.mounted(plan, make.record_id(plan.series, trial)) as storage:
            prepared = _before(bench, setup, trial, prepared)
            with engines.running(setup.system, _secrets(bench, trial), most_clients(bench.lab)) as session:
                loaded = bench.data.loaded(setup)
                prepared = prepared.also(
                    restore.untouched(session, setup.system, trial.cell.load, setup.choice, bench.printer)
                )
                prepared = bench.data.settled(setup, session, prepared)
                storage.pace(model=True)
                record = measure(
                    plan, session, loaded, trial, bench.store, bench.printer, prepared, title, quiet_s, storage
                )
        lasting = not setup.system.layout.devices  # an emulated one ends with its trial
        if record.status.comparable and lasting and trial.purpose == "lab":  # others are in no block
            bench.data.kept(setup, trial.block)
    except UnwrittenError:
        raise
    except IronbenchError as error:
        if record is not None:  # measured and kept; what failed is the engine's end, and nothing may start beside it
            raise
        bench.printer.error(error)
        return failed(plan, trial, bench.store, str(error), prepared)
    return record


def _before(bench: Bench, setup: Setup, trial: Trial, prepared: Prepared) -> Prepared:
    """Everything that is done while the engine does not run."""
    restored = bench.data.restored(setup, trial.block)
    return prepared.also(restored.conditions, restored.warnings)


def _secrets(bench: Bench, trial: Trial) -> Secrets:
    return bench.secrets.get(bench.lab.setup(trial.cell.name).origin, Secrets())


def failed(plan: Plan, trial: Trial, store: Store, cause: str, prepared: Prepared) -> Record:
    """The record of a trial that never ran."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    driven = Driven(now, alive=True, failure=cause)
    return make.keep(store, plan, None, Loaded(), trial, driven, (Observation(), None), prepared)


def most_clients(lab: Lab) -> int:
    """Every engine of a lab is made to take as many, so that they differ in nothing but the factors."""
    return max(setup.cell.load.clients for setup in lab.setups)
