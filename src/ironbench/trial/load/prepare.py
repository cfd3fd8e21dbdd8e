"""Prepares an engine for a plan's workload: loads its data, or finds existing data."""

from __future__ import annotations

from ironbench import engines, workloads
from ironbench.engines.administration import TABLES
from ironbench.model.plan import Plan
from ironbench.model.session import Session
from ironbench.printer import Printer
from ironbench.trial.load import entries, pieces, rows
from ironbench.trial.load.loaded import Loaded
from ironbench.trial.load.marker import TABLE, LoadState, Marker
from ironbench.trial.load.rows import Copiers
from ironbench.trial.load.space import enough_memory, enough_space
from ironbench.trial.load.tables import (
    present,
    refuse_altered,
    refuse_changed,
    refuse_foreign_routines,
    refuse_occupied,
    refuse_shared,
    refuse_strangers,
    size,
)
from ironbench.workloads import Dataset


def data_ready(session: Session, plan: Plan, printer: Printer, copiers: Copiers | None = None) -> Loaded:
    """Loads the complete data of the plan's workload, or finds existing data. Raises InputError if others created the
    tables, or if there is too little space. Raises FailureError if loading fails."""
    dataset = workloads.get(plan.choice.workload).dataset(session.engine, plan.choice.options)
    if dataset is None:
        return Loaded()
    return fill(session, dataset, rows.connections(session), printer, plan.system.dsn is None, copiers)


def fill(
    session: Session,
    dataset: Dataset,
    connections: int,
    printer: Printer,
    own_server: bool = True,
    copiers: Copiers | None = None,
) -> Loaded:
    """Reuses the tables if they are complete and have the same key. Otherwise creates them again.

    Complete tables are dropped only on a server that ironbench started. On other servers, loading them may have taken
    hours, or another user may have created tables with the same names.
    """
    if dataset.entries is not None:
        return entries.fill(session, dataset, printer, own_server)
    marker = Marker(session, dataset.name)
    refuse_occupied(session, (*dataset.tables, TABLE, pieces.TABLE))
    tables_there = present(session, dataset.tables)
    known = marker.read()
    if known is None and tables_there and (sharing := _sharing(session, dataset, marker)):
        if not own_server:
            shared = next(table for table in tables_there if any(table in tables for _, tables in sharing.values()))
            refuse_shared(session, shared, [other.key for other, _ in sharing.values()])
        for name, (other, tables) in sharing.items():
            printer.say(f"data: {other.key} is dropped, because {dataset.key} has tables with the same names")
            rows.drop(session, present(session, tables))
            # Last: without the marker, tables that remain after a kill would seem to belong to the user.
            Marker(session, name).forget()
        tables_there = present(session, dataset.tables)
    if known is None and tables_there:
        refuse_strangers(session, dataset, tables_there)
        return Loaded(rows=dataset.rows, data_bytes=size(session, dataset.tables), reused=True, key=dataset.key)
    if known is not None and known.complete and tables_there:
        refuse_changed(session, dataset, known.key, tables_there, own_server)
    if known is not None and known.complete and known.key == dataset.key and len(tables_there) == len(dataset.tables):
        refuse_altered(session, dataset, marker.fixed())
        printer.say(f"data: {dataset.key}, loaded at {known.loaded_at} UTC, reused")
        return Loaded(known.rows, known.bytes, known.elapsed_s, {}, size(session, dataset.tables), 0, True, dataset.key)
    begun = known is not None and not known.complete and known.key == dataset.key
    if begun and len(tables_there) == len(dataset.tables) and rows.resumable(session, dataset):
        printer.say(f"data: {dataset.key}, continuing an interrupted load")
        enough_memory(dataset, copiers.here if copiers else 1)
        return rows.loaded(session, dataset, connections, marker, printer, resume=True, copiers=copiers)
    if not own_server:
        needs = ((f"table {dataset.tables[0]}", TABLES),)
        engines.get(session.engine).administration.require_rights(session, needs)
    # On a server that ironbench starts, routines without a mark were created by older versions of ironbench.
    if known is None or not own_server:
        refuse_foreign_routines(session, dataset.references)
    if known is not None:
        if known.complete and tables_there:
            printer.say(f"data: {known.key} is dropped and replaced by {dataset.key}")
        rows.drop(session, tables_there)
    enough_space(session, dataset)
    enough_memory(dataset, copiers.here if copiers else 1)
    return rows.loaded(session, dataset, connections, marker, printer, copiers=copiers)


def _sharing(session: Session, dataset: Dataset, marker: Marker) -> dict[str, tuple[LoadState, tuple[str, ...]]]:
    """Returns the other families of tables that ironbench loaded here and that share a table name with `dataset`: for
    the name of each family, its state and its tables."""
    others = marker.others()
    found = {}
    for name in workloads.names() if others else ():
        workload = workloads.get(name)
        if session.engine not in workload.engines:
            continue
        other = workload.dataset(session.engine, workload.validated({}))
        if other and other.name in others and not set(other.tables).isdisjoint(dataset.tables):
            state = Marker(session, other.name).read()
            if state is not None:
                found[other.name] = state, other.tables
    return found
