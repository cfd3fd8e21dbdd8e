"""What an experiment leaves in a database of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ironbench import engines, workloads
from ironbench.engines.administration import Made
from ironbench.load import marker, pieces
from ironbench.model.session import Session
from ironbench.model.system import Choice


def left(session: Session, choices: Sequence[Choice]) -> Made:
    """What is marked there and belongs to the data of these choices: nothing of other experiments."""
    found = (workloads.get(one.workload).dataset(session.engine, one.options) for one in choices)
    datasets = [dataset for dataset in found if dataset is not None]
    own_keys = {one.data.key for one in choices if one.data is not None and one.data.imported}
    if not datasets and not own_keys:
        return Made()
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
