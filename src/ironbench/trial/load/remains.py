"""Finds and reports the objects that an experiment leaves behind in an existing server's database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from ironbench import engines, workloads
from ironbench.engines.administration import MarkedObjects
from ironbench.errors import IronbenchError
from ironbench.model.lab import Lab
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session
from ironbench.model.system import Choice, Setup
from ironbench.printer import Printer
from ironbench.trial.load import marker, pieces


def _left(session: Session, choices: Sequence[Choice]) -> MarkedObjects:
    """Returns the objects with ironbench's mark that belong to the data of these choices. Objects of other experiments
    are not included."""
    found = (workloads.get(one.workload).dataset(session.engine, one.options) for one in choices)
    datasets = [dataset for dataset in found if dataset is not None]
    own_keys = {one.data.key for one in choices if one.data is not None and one.data.imported}
    if not datasets and not own_keys:
        return MarkedObjects()
    made = engines.get(session.engine).administration.made(session)
    own = {marker.TABLE, pieces.TABLE}.union(*(dataset.tables for dataset in datasets))
    tables = {name: size for name, size in made.tables.items() if name.strip('"') in own}
    statements = " ".join(statement for dataset in datasets for statement in dataset.references)
    routines = tuple(name for name in made.routines if name.partition("(")[0].split()[-1] in statements)
    databases = {
        name: size for name, size in made.databases.items() if made.keys.get(name, "").partition(" ")[0] in own_keys
    }
    entries = made.entries if any(dataset.entries for dataset in datasets) else {}
    return replace(made, tables=tables, routines=routines, databases=databases, entries=entries)


def say_of_lab(lab: Lab, secrets: Mapping[str, Secrets], printer: Printer) -> None:
    """Reports what a lab leaves behind, once for each existing server."""
    theirs: dict[str, list[Setup]] = {}
    for setup in lab.measurable:
        if setup.system.dsn:
            theirs.setdefault(setup.system.dsn, []).append(setup)
    named: set[tuple[str, str]] = set()
    for setups in theirs.values():
        own_secrets = secrets.get(setups[0].origin, Secrets())
        say_at(setups[0], own_secrets, [setup.choice for setup in setups], printer, named)


def say_at(
    setup: Setup, secrets: Secrets, choices: Sequence[Choice], printer: Printer, named: set[tuple[str, str]]
) -> None:
    """Reports what is left behind on the server of a setup."""
    with suppress(IronbenchError), engines.running(setup.system, secrets, 1) as session:
        say(session, str(setup.system.dsn), choices, printer, named)


def say(session: Session, dsn: str, choices: Sequence[Choice], printer: Printer, named: set[tuple[str, str]]) -> None:
    """Reports the data of these choices that are left on an existing server. This must be done after successful and
    failed runs. `named`: servers and databases that were already reported. This argument is needed because one database
    may have several addresses."""
    with suppress(IronbenchError):  # if the server has died, there is no report
        made = _left(session, choices)
        if made.words and (made.server, made.database) not in named:
            named.add((made.server, made.database))
            kept = f"kept on the server: {made.words}, so that the next run need not load the data again"
            printer.say(f"{kept}; ironbench cleanup --dsn '{dsn}' removes everything that ironbench created there")
