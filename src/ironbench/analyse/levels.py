"""Cells of a full design of two factors, to be shown as groups: the first factor's levels, each with the second's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ironbench.analyse.archive import Archive
from ironbench.analyse.curve import metrics_of
from ironbench.analyse.summarise import Summary
from ironbench.catalogue import part_of
from ironbench.model.lab import Lab
from ironbench.model.record import Record

_QUERY = "query_time_s{query="


@dataclass(frozen=True, slots=True)
class Level:
    """One cell by its two levels."""

    first: str
    second: str
    value: Summary
    queries: Mapping[str, Summary]
    """Query → its time."""


@dataclass(frozen=True, slots=True)
class Levels:
    """All cells that were measured, in the order of the levels."""

    first: str
    """The factors' names."""
    second: str
    metric: str
    cells: tuple[Level, ...]


def levels(lab: Lab, groups: Sequence[tuple[str, Sequence[Record]]], archive: Archive) -> Levels | None:
    """`groups`: cell and its comparable trials. None unless exactly two factors vary, each level with each other's."""
    if lab.design != "full" or len(lab.factors) != 2:
        return None
    first, second = lab.factors
    trials = dict(groups)
    by_levels = {
        (setup.cell.levels.get(first.name, ""), setup.cell.levels.get(second.name, "")): trials.get(setup.cell.name, ())
        for setup in lab.setups
    }
    cells = []
    for one in first.levels:
        for other in second.levels:
            records = by_levels.get((one, other), ())
            value = metrics_of(records, [lab.method.metric], archive).get(lab.method.metric)
            if value is not None:
                cells.append(Level(one, other, value, _queries(records)))
    return Levels(first.name, second.name, lab.method.metric, tuple(cells)) if cells else None


def _queries(records: Sequence[Record]) -> dict[str, Summary]:
    names = sorted({name for record in records for name in record.metrics if name.startswith(_QUERY)})
    return {part_of(name).partition("=")[2]: value for name, value in metrics_of(records, names).items()}
