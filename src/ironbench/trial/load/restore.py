"""Restores the initial state of a system's data before a trial."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ironbench import engines, units, workloads
from ironbench.host import copies, space
from ironbench.model.note import Note, note
from ironbench.model.session import Session
from ironbench.model.system import Choice, Load, Setup, System
from ironbench.printer import Printer
from ironbench.trial.load import entries, prepare, rows
from ironbench.trial.load.databases import TrialDatabases
from ironbench.trial.load.estimate import COPY_BYTES_PER_S, EXPENSIVE
from ironbench.trial.load.source import DataSource
from ironbench.trial.load.tables import present
from ironbench.workloads import Dataset

MOST_DEAD = 0.02
"""A table is vacuumed if its ratio of dead tuples to live tuples is higher than this. Fewer dead tuples do not affect a
trial, and reading a large database to remove them would take too long. If less than 2% of the pages contain dead
tuples, PostgreSQL's vacuum does not process the indexes (BYPASS_THRESHOLD_PAGES in vacuumlazy.c)."""


def restore_frequency(setup: Setup, source: DataSource, restore: str) -> str:
    """Returns how often data are restored: `trial` (before each trial), `block` (before each block), or `lab` (once).
    `restore` is the value in the lab file: `trial`, `block` or `auto`.

    For `auto`, data are restored before each trial unless this would take more than a tenth of the trial's length. If
    it takes longer, there are three cases. If trials do not write, data are restored once. If trials write but undo
    their changes (`Workload.is_stable`), data are restored before each block. If their changes remain, data are still
    restored before each trial.

    A workload may require a copy for each trial (`Workload.starts_from_copy`).
    """
    if restore != "auto":
        return restore
    workload, load = workloads.get(setup.choice.workload), setup.cell.load
    if workload.starts_from_copy:
        return "trial"
    length_s = load.duration_s
    if length_s is None and load.transactions is None:
        length_s = workload.expected_s(setup.system.engine, setup.choice.options)
    if lasting(setup) or length_s is None or cost_s(setup, source) <= EXPENSIVE * (length_s + load.warmup_s):
        return "trial"
    return "block" if workload.writes(setup.choice.options) else "lab"


def lasting(setup: Setup) -> bool:
    """Returns whether a trial changes its data permanently."""
    workload = workloads.get(setup.choice.workload)
    options = setup.choice.options
    return workload.writes(options) and not workload.is_stable(options)


def cost_s(setup: Setup, source: DataSource) -> float:
    """Returns the approximate number of seconds to restore the data."""
    if source.kind == "database":
        return source.bytes / COPY_BYTES_PER_S
    if source.kind == "snapshot" and source.folder is not None and setup.system.layout.data is not None:
        shared = copies.can_share(source.folder, space.existing(setup.system.layout.data))
        return 0.0 if shared else source.bytes / COPY_BYTES_PER_S
    return source.loaded.elapsed_s if source.kind == "reload" else 0.0


def restore_data(setup: Setup, source: DataSource, databases: TrialDatabases) -> dict[str, str]:
    """Restores the data of a configuration before a trial, by copying them to a new database or by `restored`. Returns
    conditions of the trial. Raises FailureError, or InputError if there is too little space."""
    return databases.restored(setup, source) if source.kind == "database" else restored(setup, source)


def restored(setup: Setup, source: DataSource) -> dict[str, str]:
    """Restores the data of a configuration while its engine is stopped. Returns conditions of the trial. Raises
    FailureError, or InputError if there is too little space."""
    begin = time.perf_counter()
    if source.kind == "snapshot" and source.folder is not None:
        done = engines.get(setup.system.engine).restore(setup.system, source.folder)
        took_s = time.perf_counter() - begin
        amount = f"{units.stored(done.bytes)} in {units.span(took_s)}"
        return {"data": f"snapshot {source.folder.name} ({source.key})", "restored": f"{done.how}, {amount}"}
    if source.kind == "reload":
        _reload_existing(setup, source)
        return {"data": f"loaded again ({source.key})", "restored": f"load, {units.span(time.perf_counter() - begin)}"}
    return {"data": "as found", "restored": "no"}


AS_FOUND = "data-as-found"


def warnings(setup: Setup, source: DataSource) -> tuple[Note, ...]:
    """Returns a warning if trials do not start from the same data. The warning is dropped later if the trials did not
    write."""
    if source.kind != "as-found" or not workloads.get(setup.choice.workload).writes(setup.choice.options):
        return ()
    return (note(AS_FOUND),)


def untouched(session: Session, system: System, load: Load, choice: Choice, printer: Printer) -> dict[str, str]:
    """Loads the data again if the checks after the next trial need the original data and the present data have changed.
    Returns conditions of the next trial. Raises InputError or FailureError.

    On existing servers, only tables with ironbench's mark are dropped. Before a cold trial that writes data, the
    function does nothing, because examining the data would fill the caches.
    """
    workload = workloads.get(choice.workload)
    dataset = workload.dataset(session.engine, choice.options)
    if dataset is None or (load.cache == "cold" and workload.writes(choice.options)):
        return {}
    if not workload.needs_untouched(session, choice.options):
        return {}
    if system.dsn is not None and not set(dataset.tables) <= set(
        engines.get(session.engine).administration.made(session).tables
    ):
        return {}
    printer.say(f"data: {dataset.key} is loaded again, because trials changed the data and answers are checked")
    began = time.perf_counter()
    _reload(session, dataset, printer, system.dsn is None)
    return {"data": f"loaded again ({dataset.key})", "restored": f"load, {units.span(time.perf_counter() - began)}"}


def _reload(session: Session, dataset: Dataset, printer: Printer, own_server: bool) -> None:
    if dataset.entries is not None:
        entries.drop(session, dataset)
    else:
        rows.drop(session, present(session, dataset.tables))
    prepare.fill(session, dataset, rows.connections(session), printer, own_server)


def _reload_existing(setup: Setup, source: DataSource) -> None:
    """Loads the data again on an existing server, into tables that this process has loaded."""
    with engines.running(setup.system, source.secrets, setup.cell.load.clients) as session:
        dataset = workloads.get(setup.choice.workload).dataset(session.engine, setup.choice.options)
        if dataset is not None:
            _reload(session, dataset, Printer(), own_server=False)


def without_dead_tuples(session: Session, dataset: Dataset) -> Mapping[str, str]:
    """Removes dead tuples that earlier trials left behind. Returns what was done, as conditions of the next trial.

    The next trial then finds the data at their original size.
    """
    administration = engines.get(session.engine).administration
    return administration.vacuum_dead_tuples(session, dataset.tables, MOST_DEAD)
