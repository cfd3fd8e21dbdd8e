"""The overview of a workload's results: a table of the metrics that users of the workload expect."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ironbench.report.cell import Row, centre_with_range
from ironbench.report.charts.base import Table
from ironbench.report.numbers import unit_of
from ironbench.study.study import CellResults, SubjectResults

_FEW = 3
"""Up to this number of systems, each system is a column of the overview. With more systems, each system is a row."""


def overview(
    systems: Sequence[SubjectResults | CellResults], facts: Mapping[str, str], counts: Collection[str] = ()
) -> Table:
    """Returns a table of the metrics that at least one system has. `facts`: metrics by the words that name them.
    `counts`: metrics that are shown as whole numbers."""
    cells = {
        words: tuple(
            centre_with_range(one.metrics.get(metric), "count" if metric in counts else unit_of(metric))
            for one in systems
        )
        for words, metric in facts.items()
        if any(metric in one.metrics for one in systems)
    }
    names = tuple(one.name for one in systems)
    if len(systems) > _FEW:
        turned: list[Row] = [(name, *figures) for name, *figures in zip(names, *cells.values(), strict=True)]
        return Table(("", *cells), tuple(turned))
    rows: list[Row] = [(words, *figures) for words, figures in cells.items()]
    return Table(("", *names), tuple(rows))
