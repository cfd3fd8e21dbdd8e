"""Chart of the confidence interval of each comparison, which becomes narrower with each block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ironbench.model.finding import Finding
from ironbench.report.cell import count
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Table
from ironbench.report.finding_tables import interval_cell, ratio_cell
from ironbench.report.numbers import percent
from ironbench.report.wording.answers.ratios import has_interval, metric_words

_MOST_TICKS = 12


def narrowing(steps: Mapping[str, Sequence[Finding]], analyses: Sequence[int]) -> Chart | None:
    """Draws the confidence intervals after each block. Returns None if there is no confidence interval yet.

    `steps`: maps the name of each comparison to its findings, one after each block. `analyses`: the numbers of blocks
    at which the lab runs an interim analysis.
    """
    known = [(name, one) for name, found in steps.items() for one in found if has_interval(one)]
    if not known:
        return None
    table = Table(
        ("comparison", "blocks", "ratio", "CI"),
        tuple((name, count(one.blocks), ratio_cell(one), interval_cell(one)) for name, one in known),
    )
    rows: list[dict[str, Any]] = [
        {
            "comparison": name,
            "blocks": one.blocks,
            "ratio": one.ratio,
            "low": one.low,
            "high": one.high,
            "interval": interval,
            "analysis": one.blocks in analyses,
        }
        for (name, one), (*_, interval) in zip(known, table.texts, strict=True)
    ]
    names = list(dict.fromkeys(name for name, _ in known))
    first = next(one for found in steps.values() for one in found)
    last = {name: row for name, *row in table.texts}
    return Chart(
        "narrowing",
        f"Ratio of {metric_words(first.metric)} with confidence interval",
        "; ".join(
            f"{name}: {ratio}, {interval} after {blocks} blocks" for name, (blocks, ratio, interval) in last.items()
        ),
        base.specification(_layers(names, first.margin, _ticks(rows)), {"steps": rows}, 220),
        table,
        "after each block; large points mark interim analyses",
        base.keys(names, "circle"),
        (
            f"The grey band contains ratios that count as equivalent (within {percent(first.margin)}). Only interim "
            "analyses decide the verdict."
        ),
        wide=True,
    )


def _ticks(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Returns the numbers of blocks at which the axis has ticks. With many blocks, only every second, third or later
    number has a tick."""
    blocks = sorted({row["blocks"] for row in rows})
    return blocks[:: -(-len(blocks) // _MOST_TICKS)]


def _layers(names: list[str], margin: float, ticks: list[int]) -> list[dict[str, Any]]:
    colour = {"field": "comparison", "type": "nominal", "scale": base.colour(names)["scale"], "legend": None}
    x = {
        "field": "blocks",
        "type": "quantitative",
        "axis": {"title": "blocks", "values": ticks, "format": "d"},
        "scale": {"zero": False, "nice": False},
    }
    y = {"field": "ratio", "type": "quantitative", "scale": {"type": "log", "nice": False}, "axis": {"title": None}}
    tooltip = [{"field": name, "type": "nominal"} for name in ("comparison", "blocks", "interval")]
    rows = {"name": "steps"}
    band = {"y": {"datum": 1 / (1 + margin)}, "y2": {"datum": 1 + margin}}
    return [
        {"mark": {"type": "rect", "color": "@rule", "opacity": 0.25}, "encoding": band, "data": {"values": [{}]}},
        {"mark": {"type": "rule", "color": "@muted"}, "encoding": {"y": {"datum": 1}}, "data": {"values": [{}]}},
        {
            "data": rows,
            "mark": {"type": "area", "opacity": 0.22, "interpolate": "monotone"},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
        },
        {
            "data": rows,
            "mark": {"type": "line", "interpolate": "monotone", "strokeWidth": 2},
            "encoding": {"x": x, "y": y, "color": colour},
        },
        {
            "data": rows,
            "mark": {"type": "point", "filled": True, "opacity": 1},
            "encoding": {
                "x": x,
                "y": y,
                "color": colour,
                "size": {"condition": {"test": "datum.analysis", "value": 110}, "value": 25},
                "tooltip": tooltip,
            },
        },
    ]
