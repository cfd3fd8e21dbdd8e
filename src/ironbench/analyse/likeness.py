"""What the trials of a lab's comparison differ in besides what the lab meant to vary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from ironbench.analyse.differences import differing, fact_text, facts_of, flattened
from ironbench.analyse.subjects import work_name
from ironbench.catalogue import base_name
from ironbench.model.lab import Lab
from ironbench.model.record import Record
from ironbench.model.system import Setup

_MEASURED = "At the same load they were measured, too, at shares of the baseline's peak."
_DECLARE = (
    'Compare them at rates that the baseline can sustain: rate = ["50%", "70%", "90%"] in [vary], with design = "full".'
)
_TIMES = ("response_time", "service_time")
# A pilot trial may choose each cell's warm-up; it is not part of what is measured.
_INCIDENTAL = ("load.warmup",)


def cautions(metric: str, lab: Lab, a: Sequence[Record], b: Sequence[Record]) -> tuple[str, ...]:
    """One sentence each; `a` and `b` are the trials of a cell and of its baseline that were compared."""
    if not a or not b:
        return ()
    said = []
    if work_name(a[0].choice) != work_name(b[0].choice):
        said.append(f"The work differs: {work_name(a[0].choice)} against {work_name(b[0].choice)}.")
    if len({record.machine for record in (*a, *b)}) > 1:
        said.append("The machine, or how it was set up, changed between trials.")
    meant = _meant(lab, a[0].cell.name, b[0].cell.name)
    sides = [_common(a), _common(b)]
    for name in differing(sides):
        if name not in meant and not name.startswith(_INCIDENTAL):
            left, right = (fact_text(flat, name) for flat in sides)
            said.append(f"Not meant to vary, but it did: {name} {left} against {right}.")
    if base_name(metric).startswith(_TIMES) and _closed_at_equal_clients(a[0], b[0]):
        said.append(
            "Closed loop: at equal clients the faster system was given more work, so these times are not at the same "
            "load. " + (_MEASURED if lab.rated else _DECLARE)
        )
    return tuple(said)


def _meant(lab: Lab, cell: str, baseline: str) -> set[str]:
    """Facts in which the two setups were declared to differ."""
    declared = {setup.cell.name: setup for setup in lab.all_setups}
    if cell not in declared or baseline not in declared:
        return set()
    return set(differing([_facts(declared[cell]), _facts(declared[baseline])]))


def _facts(setup: Setup) -> dict[str, str]:
    return {**flattened("system", asdict(setup.system)), **flattened("load", asdict(setup.cell.load))}


def _common(records: Sequence[Record]) -> dict[str, str]:
    """The facts of a cell's trials; one that changed from trial to trial shows all its values."""
    flats = [facts_of(record) for record in records]
    names = dict.fromkeys(name for flat in flats for name in flat)
    return {name: " or ".join(dict.fromkeys(fact_text(flat, name) for flat in flats)) for name in names}


def _closed_at_equal_clients(a: Record, b: Record) -> bool:
    load, other = a.cell.load, b.cell.load
    return load.rate is None and other.rate is None and load.clients == other.clients and a.system != b.system
