"""What two factors come to together: bars of the lab's metric, and of every query, in groups of levels."""

from __future__ import annotations

from ironbench.analyse.levels import Levels
from ironbench.report.charts.base import Chart
from ironbench.report.charts.grouped import Bar, Shown, grouped
from ironbench.report.findings import metric_words
from ironbench.report.numbers import unit_of

_MOST_CHARTS = 3
"""Of levels of the second factor that have a chart of their own with every query."""


def whole(found: Levels | None) -> list[Chart]:
    """The lab's metric: groups are the first factor's levels, colours the second's."""
    if found is None:
        return []
    title = f"{_capital(metric_words(found.metric))} by {found.first} and {found.second}"
    bars = [Bar(f"{found.first}={cell.first}", f"{found.second}={cell.second}", cell.value) for cell in found.cells]
    return grouped(Shown("levels", title, unit_of(found.metric)), bars)


def by_query(found: Levels | None) -> list[Chart]:
    """Every query's time: a chart for each level of the second factor, all to one scale, colours the first's."""
    if found is None:
        return []
    seconds = list(dict.fromkeys(cell.second for cell in found.cells))[:_MOST_CHARTS]
    top = max((time.high for cell in found.cells for time in cell.queries.values()), default=0.0)
    charts = []
    for number, second in enumerate(seconds):
        own = [cell for cell in found.cells if cell.second == second]
        queries = sorted({query for cell in own for query in cell.queries})
        bars = [
            Bar(query, f"{found.first}={cell.first}", cell.queries[query])
            for query in queries
            for cell in own
            if query in cell.queries
        ]
        title = f"Time of each query, {found.second}={second}"
        charts += grouped(Shown(f"levels-queries-{number}", title, "s", top=top, wide=True), bars)
    return charts


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
