"""Chart of how much faster each query becomes with more parallel processes or threads."""

from __future__ import annotations

import statistics
from typing import Any

from ironbench.report.cell import Row, TableCell, cell_text
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Key, Table
from ironbench.study.queries import Queries

_ALL = "all queries"


def speed_up(queries: Queries | None) -> list[Chart]:
    """Draws how much faster each query is than with the lowest degree of parallelism. Returns an empty list unless each
    system declares a different degree of parallelism."""
    subjects = queries.by_parallelism if queries else ()
    if not queries or not subjects:
        return []
    first, last = subjects[0], subjects[-1]
    shared = [query for query in queries.names if all(query in subject.times_s for subject in subjects)]
    if not shared:
        return []
    ratios = {
        subject.parallelism or 1: {query: first.times_s[query] / subject.times_s[query] for query in shared}
        for subject in subjects
    }
    means = {degree: statistics.geometric_mean(values.values()) for degree, values in ratios.items()}
    each: list[Row] = [
        (query, *(TableCell(values[query], "times", bare=True) for values in ratios.values())) for query in shared
    ]
    all_of_them: Row = (_ALL, *(TableCell(gain, "times", bare=True) for gain in means.values()))
    table = Table(("query", *map(str, ratios)), (*each, all_of_them))
    drawn = [{**row, "degree": int(row["degree"]), "gain": row["value"]} for row in base.data(table, "query", "degree")]
    lines = [row for row in drawn if row["query"] != _ALL]
    whole = [row for row in drawn if row["query"] == _ALL]
    ideal = [{"degree": degree, "gain": degree / (first.parallelism or 1)} for degree in ratios]
    ranked = sorted(shared, key=lambda query: ratios[last.parallelism or 1][query])
    ends = [
        {"query": query, "degree": last.parallelism, "gain": ratios[last.parallelism or 1][query]}
        for query in dict.fromkeys((ranked[0], ranked[-1]))
    ]
    overall = cell_text(all_of_them[-1])
    return [
        Chart(
            "speed-up",
            "Speed-up by degree of parallelism",
            f"With a degree of parallelism of {last.parallelism} instead of {first.parallelism}, queries are {overall} "
            f"times as fast overall; {ranked[-1]} gains most, {ranked[0]} least.",
            base.specification(
                _layers(list(ratios)), {"lines": lines, "whole": whole, "ideal": ideal, "ends": ends}, 340
            ),
            table,
            "speed-up",
            (
                Key(_ALL, "s0", "line"),
                Key("one query", "rule", "line"),
                Key("linear speed-up", "muted", "dash"),
            ),
        )
    ]


def _layers(degrees: list[int]) -> list[dict[str, Any]]:
    x: dict[str, Any] = {
        "field": "degree",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2, "domain": [degrees[0], degrees[-1] * 1.12], "nice": False},
        "axis": {"title": "processes or threads per query", "values": degrees, "format": "d"},
    }
    y: dict[str, Any] = {
        "field": "gain",
        "type": "quantitative",
        "scale": {"zero": False, "nice": True},
        "axis": {"title": None, "tickCount": 6, "format": "~r", "grid": True},
    }
    tooltip = [{"field": "query"}, {"field": "degree"}, {"field": "text", "title": "speed-up"}]

    def line(data: str, mark: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"data": {"name": data}, "mark": {"type": "line", **mark}, "encoding": {"x": x, "y": y, **more}}

    each = line(
        "lines",
        {"color": "@rule", "strokeWidth": 1.2, "point": {"color": "@rule", "size": 18}},
        detail={"field": "query"},
        tooltip=tooltip,
    )
    ideal = line("ideal", {"color": "@muted", "strokeDash": [5, 4]})
    whole = line("whole", {"color": "@s0", "strokeWidth": 2.6, "point": {"color": "@s0", "size": 50}}, tooltip=tooltip)
    named = {
        "data": {"name": "ends"},
        "mark": {"type": "text", "align": "left", "dx": 6, "fontSize": 11.5, "color": "@muted"},
        "encoding": {"x": x, "y": y, "text": {"field": "query"}},
    }
    return [each, ideal, whole, named]
