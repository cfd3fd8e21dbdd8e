"""All charts of queries one by one, in reading order."""

from __future__ import annotations

from ironbench.analyse.queries import Queries
from ironbench.report.charts.base import Chart
from ironbench.report.charts.query_bars import query_bars
from ironbench.report.charts.query_map import query_map
from ironbench.report.charts.speed_up import speed_up


def by_query(found: Queries | None) -> list[Chart]:
    """None where the work is not made of queries."""
    return [*query_bars(found), *query_map(found), *speed_up(found)]
