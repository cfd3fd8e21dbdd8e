"""How reports and comparisons show the results of workloads whose result is not a throughput."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from ironbench.model.described import LEADING

if TYPE_CHECKING:
    from ironbench.model.record import Record
    from ironbench.report.cell import Content
    from ironbench.report.charts.base import Table
    from ironbench.report.page import Section
    from ironbench.study.compare import SystemComparison
    from ironbench.study.study import Study, SubjectResults

Groups = Sequence[tuple[str, Sequence["Record"]]]
"""Pairs of a configuration's name and its comparable trials."""


@dataclass(frozen=True, slots=True)
class Presentation:
    """Functions that present the results of a workload. These functions replace the usual presentation, which shows the
    throughput at each number of clients."""

    headline: Callable[[Study], list[tuple[str, str]]]
    """Function that returns pairs of a system's name and a sentence about the system."""
    card: Callable[[SubjectResults], tuple[Content, str, list[tuple[str, Content]]]]
    """Function that returns the content of a system's card: a figure, its unit, and further facts."""
    peaks: Callable[[Study], Table]
    """Function that returns the table of results, which replaces the table of peaks."""
    sections: Callable[[Study], Sequence[Section]]
    """Function that returns additional sections of a report. The report shows them after claims and findings
    (`sections/findings.py`)."""
    hides: frozenset[str]
    """Ids of sections that reports leave out, because they do not apply to the workload."""
    compared: Callable[[SystemComparison], list[tuple[str, Table]]] = lambda _: []
    """Function that returns the results of a comparison of A and B, which replace the table of peaks. If it returns an
    empty list, the peaks are shown."""
    of_lab: Callable[[Groups], Sequence[Section]] = lambda _: ()
    """Function that returns additional sections of a lab's report."""


@cache
def _known() -> dict[str, Presentation]:
    """Maps the name of each workload to its presentation. The modules are imported only here, because most comparisons
    need none of them."""
    from ironbench.report import maintenance, storage, tpch

    of_maintenance = Presentation(
        maintenance.headline, maintenance.card, maintenance.table, maintenance.sections, maintenance.HIDES
    )
    return {
        **dict.fromkeys(maintenance.WORKLOADS, of_maintenance),
        tpch.WORKLOAD: Presentation(tpch.headline, tpch.card, tpch.table, tpch.sections, tpch.HIDES),
        storage.WORKLOAD: Presentation(
            storage.headline,
            storage.card,
            storage.table,
            storage.sections,
            storage.HIDES,
            storage.compared,
            storage.of_lab,
        ),
    }


def of_study(study: Study) -> Presentation | None:
    """Returns the presentation for the workload of runs. Returns None for a workload whose result is the throughput of
    clients."""
    return of_part(study.parts[0]) if study.parts else None


def of_part(part: SubjectResults) -> Presentation | None:
    return _known().get(part.subject.records[0].choice.workload)


def of_lab(study: Study) -> Iterator[Section]:
    """Yields the additional sections for each workload of the lab's configurations."""
    by_workload: dict[str, list[tuple[str, Sequence[Record]]]] = {}
    for cell in study.cells:
        if cell.usable:
            by_workload.setdefault(cell.usable[0].choice.workload, []).append((cell.name, cell.usable))
    for workload, groups in by_workload.items():
        if shown := _known().get(workload):
            yield from shown.of_lab(groups)


def comparison_tables(comparison: SystemComparison) -> list[tuple[str, Table]]:
    """Returns the tables that replace the peaks of A and B. Returns an empty list if the peaks are to be shown."""
    if comparison.leading == LEADING or not comparison.trials[0]:
        return []
    shown = _known().get(comparison.trials[0][0].choice.workload)
    return shown.compared(comparison) if shown else []
