"""The way of the data: plan → prepare → load → drive + observe → record."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench import engines, load, observe
from ironbench.analyse import curve
from ironbench.drive.trial import drive
from ironbench.load import Loaded
from ironbench.model.plan import Plan
from ironbench.model.record import Record, Status
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session
from ironbench.model.system import Trial
from ironbench.printer import Printer
from ironbench.record import Store, make


def run(plan: Plan, secrets: Secrets, store: Store, printer: Printer) -> list[Record]:
    """Starts the engine, loads the data once, measures every trial in order, then the peak afresh."""
    with engines.running(plan.system, secrets, plan.most_clients) as session:
        loaded = load.ready(session, plan, printer)
        sweep = measured(plan, session, loaded, plan.trials, store, printer)
        if over(session, sweep):
            return sweep
        fresh = plan.confirmation_trials(curve.peak(sweep))
        return sweep + measured(plan, session, loaded, fresh, store, printer)


def measured(
    plan: Plan, session: Session, loaded: Loaded, trials: Sequence[Trial], store: Store, printer: Printer
) -> list[Record]:
    """The trials in order, up to one after which there is no going on."""
    records: list[Record] = []
    for trial in trials:
        records.append(measure(plan, session, loaded, trial, store, printer))
        if over(session, records):
            break
    return records


def over(session: Session, records: Sequence[Record]) -> bool:
    """Whether the user interrupted the last trial, or the engine did not survive it."""
    return records[-1].status is Status.CUT_SHORT or not session.alive()


def measure(plan: Plan, session: Session, loaded: Loaded, trial: Trial, store: Store, printer: Printer) -> Record:
    """One trial, from driving it to its record in the store."""
    driven = drive(plan, session, trial, observe.sources(session, plan.observe), printer)
    record = make.keep(store, plan, session, loaded, trial, driven, observe.observed(driven))
    if not record.status.comparable and not driven.failure:  # a failure was said when it happened
        printer.say(f"  {record.status.value}: {record.cause}")
    return record
