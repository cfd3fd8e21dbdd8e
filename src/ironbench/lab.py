"""The way of the data: plan → prepare → load → drive + observe → record."""

from __future__ import annotations

from ironbench import engines, load, observe
from ironbench.analyse import curve
from ironbench.drive.trial import drive
from ironbench.load import Loaded
from ironbench.model.plan import Plan
from ironbench.model.record import Record
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session
from ironbench.model.system import Trial
from ironbench.printer import Printer
from ironbench.record import Store, make


def run(plan: Plan, secrets: Secrets, store: Store, printer: Printer) -> list[Record]:
    """Starts the engine, loads the data once, measures every trial in order, then the peak afresh."""
    with engines.running(plan.system, secrets, plan.most_clients) as session:
        loaded = load.ready(session, plan, printer)
        sweep = [measure(plan, session, loaded, trial, store, printer) for trial in plan.trials]
        fresh = plan.confirmation_trials(curve.peak(sweep))
        return sweep + [measure(plan, session, loaded, trial, store, printer) for trial in fresh]


def measure(plan: Plan, session: Session, loaded: Loaded, trial: Trial, store: Store, printer: Printer) -> Record:
    """One trial, from driving it to its record in the store."""
    driven = drive(plan, session, trial, observe.sources(session, plan.observe), printer)
    return make.keep(store, plan, session, loaded, trial, driven, observe.observed(driven))
