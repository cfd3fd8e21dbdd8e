"""Every query in every system: a map whose darker fields took longer than the fastest system's."""

from __future__ import annotations

from typing import Any

from ironbench.analyse.queries import Queries
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Table
from ironbench.report.numbers import number

_ROW = 34
_LEAST_SYSTEMS = 2
_DARKEST = 10.0
"""Times the fastest, from which on fields are equally dark."""


def query_map(found: Queries | None) -> list[Chart]:
    """None for a single system."""
    if found is None or len(found.subjects) < _LEAST_SYSTEMS:
        return []
    fastest = {query: min(s.times_s[query] for s in found.subjects if query in s.times_s) for query in found.names}
    rows = [
        {
            "query": query,
            "system": subject.name,
            "time": _short(subject.times_s[query]),
            "ratio": min(_DARKEST, subject.times_s[query] / fastest[query]),
            "said": f"{number(subject.times_s[query], 3)} s",
            "times": f"{number(subject.times_s[query] / fastest[query], 3)} × the fastest",
        }
        for subject in found.subjects
        for query in found.names
        if query in subject.times_s
    ]
    names = [subject.name for subject in found.subjects]
    table = Table(
        ("system", *found.names),
        tuple(
            (s.name, *(number(s.times_s[query], 3) if query in s.times_s else "–" for query in found.names))
            for s in found.subjects
        ),
        numbers=True,
    )
    return [
        Chart(
            "query-map",
            "Time of every query in every system",
            f"{len(names)} systems by {len(found.names)} queries, darker where a query took longer than in the fastest "
            f"system; the table below has all times.",
            base.specification(_layers(names), {"map": rows}, _ROW * len(names) + 30),
            table,
            "seconds; the darker, the slower beside the fastest",
            wide=True,
        )
    ]


def _layers(names: list[str]) -> list[dict[str, Any]]:
    x: dict[str, Any] = {
        "field": "query",
        "type": "nominal",
        "sort": None,
        "axis": {"title": None, "labelAngle": 0, "orient": "top", "domain": False, "ticks": False},
    }
    y: dict[str, Any] = {
        "field": "system",
        "type": "nominal",
        "sort": names,
        "axis": {"title": None, "labelLimit": 180, "domain": False, "ticks": False},
    }
    colour = {
        "field": "ratio",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [1, _DARKEST], "range": ["@grid", "@p1"], "interpolate": "rgb"},
    }
    tooltip = [
        {"field": "query"},
        {"field": "system"},
        {"field": "said", "title": "time"},
        {"field": "times", "title": "beside the fastest"},
    ]
    field = {
        "data": {"name": "map"},
        "mark": {"type": "rect", "stroke": "@paper", "strokeWidth": 2},
        "encoding": {"x": x, "y": y, "color": colour, "tooltip": tooltip},
    }
    text = {
        "data": {"name": "map"},
        "mark": {"type": "text", "fontSize": 10.5, "color": "@ink", "tooltip": None},
        "encoding": {"x": x, "y": y, "text": {"field": "time"}},
    }
    return [field, text]


def _short(time_s: float) -> str:
    """At most four characters, to fit into a field."""
    if time_s >= 9.95:
        return f"{time_s:.0f}"
    if time_s >= 0.995:
        return f"{time_s:.1f}"
    return f"{time_s:.2f}".removeprefix("0") if time_s >= 0.01 else f"{time_s * 1000:.1g}m"
