"""The CPU budget of a lab: a stacked bar per cell, in a row under its name."""

from __future__ import annotations

from typing import Any

from ironbench.analyse.labstudy import LabStudy
from ironbench.report.charts import base, rows
from ironbench.report.charts.base import Chart, Key, Table
from ironbench.report.charts.shares import BUDGET
from ironbench.report.numbers import quantity

_HALF = 0.13
"""Half of a bar's height, in rows."""


def budgets(study: LabStudy) -> list[Chart]:
    """None where no trial measured its budget."""
    cells = [cell for cell in study.cells if cell.budget]
    parts = [part for part in BUDGET if any(cell.budget.get(part, 0.0) >= 0.0005 for cell in cells)]
    if not parts:
        return []
    names = rows.named([{"name": cell.name} for cell in cells])
    data = []
    for row, cell in zip(names, cells, strict=True):
        start = 0.0
        for part in parts:
            share = cell.budget.get(part, 0.0)
            place = {"top": row["place"] - _HALF + 0.1, "bottom": row["place"] + _HALF + 0.1}
            data.append(
                {"cell": cell.name, "part": part, "from": start, "to": start + share, **place}
                | {"said": quantity(share, "share")}
            )
            start += share
    table = Table(
        ("cell", *parts),
        tuple((cell.name, *(quantity(cell.budget.get(p, 0.0), "share") for p in parts)) for cell in cells),
    )
    words = "; ".join(
        f"{row[0]}: {', '.join(f'{p} {v}' for p, v in zip(parts, row[1:], strict=True))}" for row in table.rows
    )
    return [
        Chart(
            "budget",
            "CPU budget",
            f"Share of the CPU time of all cores. {words}.",
            base.specification(
                [*rows.frame(len(cells), "cells"), _bars(len(cells), parts)],
                {"cells": names, "shares": data},
                rows.height(len(cells)),
            ),
            table,
            "% of the CPU time of all cores",
            tuple(Key(part, BUDGET[part].removeprefix("@"), "square") for part in parts),
            wide=True,
        )
    ]


def _bars(count: int, parts: list[str]) -> dict[str, Any]:
    y = rows.place(count)
    return {
        "data": {"name": "shares"},
        "mark": {"type": "rect", "stroke": "@paper", "strokeWidth": 0.6},
        "encoding": {
            "x": {
                "field": "from",
                "type": "quantitative",
                "scale": {"domain": [0, 1], "nice": False},
                "axis": {"title": None, "format": ".0%", "tickCount": 5},
            },
            "x2": {"field": "to"},
            "y": {**y, "field": "top"},
            "y2": {"field": "bottom"},
            "color": {
                "field": "part",
                "type": "nominal",
                "scale": {"domain": parts, "range": [BUDGET[part] for part in parts]},
            },
            "tooltip": [{"field": "cell"}, {"field": "part"}, {"field": "said", "title": "share"}],
        },
    }
