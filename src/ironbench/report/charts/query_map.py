"""Every query in every system: a map whose darker fields took longer than the fastest system's.

A row for each query, so that figures keep their digits and units, also on a phone.
"""

from __future__ import annotations

import json
import textwrap
from typing import Any

from ironbench.analyse.queries import Queries
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Table
from ironbench.report.numbers import number, quantity

_ROW = 24
_LEAST_SYSTEMS = 2
_HALF = 4
"""More systems than these need the whole width of a page."""
_LINE = 44
"""Characters of all systems' names side by side on a phone; longer ones are folded."""
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
            "ratio": min(_DARKEST, subject.times_s[query] / fastest[query]),
            "said": quantity(subject.times_s[query], "s"),
            "times": f"{number(subject.times_s[query] / fastest[query], 3)} × the fastest",
        }
        for subject in found.subjects
        for query in found.names
        if query in subject.times_s
    ]
    names = [subject.name for subject in found.subjects]
    table = Table(
        ("query", *names),
        tuple(
            (query, *(quantity(s.times_s[query], "s") if query in s.times_s else "–" for s in found.subjects))
            for query in found.names
        ),
        numbers=True,
    )
    return [
        Chart(
            "query-map",
            "Time of every query in every system",
            f"{len(names)} systems by {len(found.names)} queries, darker where a query took longer than in the fastest "
            f"system; the table below has all times.",
            base.specification(_layers(names), {"map": rows}, _ROW * len(found.names) + 30),
            table,
            "darker: slower than the fastest system",
            wide=len(names) > _HALF,
        )
    ]


def _layers(names: list[str]) -> list[dict[str, Any]]:
    room = max(6, _LINE // len(names))
    folded = json.dumps({name: textwrap.wrap(name, room) or [""] for name in names}, ensure_ascii=False)
    plain: dict[str, Any] = {"title": None, "domain": False, "ticks": False}
    x: dict[str, Any] = {
        "field": "system",
        "type": "nominal",
        "sort": names,
        "axis": {**plain, "labelAngle": 0, "orient": "top", "labelExpr": f"{folded}[datum.value]"},
    }
    y: dict[str, Any] = {"field": "query", "type": "nominal", "sort": None, "axis": plain}
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
        "encoding": {"x": x, "y": y, "text": {"field": "said"}},
    }
    return [field, text]
