"""Bars in groups, one for each name in every group, with strokes over the range of the trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ironbench.analyse.summarise import Summary
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Table
from ironbench.report.numbers import measured, scale, span

_HEIGHT = 250
_FAR = 25
"""Times as much as the smallest value; beyond, an axis from zero presses it flat."""


@dataclass(frozen=True, slots=True)
class Bar:
    group: str
    name: str
    """In the legend."""
    value: Summary


@dataclass(frozen=True, slots=True)
class Shown:
    """What a chart of bars is called and says beside them."""

    id: str
    title: str
    unit: str
    note: str = ""
    table: Table | None = None
    """Instead of the bars' own values."""
    top: float = 0.0
    """Where the axis ends at least, so that several charts can be compared; in base units."""
    wide: bool = False


def grouped(shown: Shown, bars: Sequence[Bar]) -> list[Chart]:
    """None of no bars. Groups and names stand in order of first mention."""
    if not bars:
        return []
    names, groups = (list(dict.fromkeys(getattr(bar, field) for bar in bars)) for field in ("name", "group"))
    suffix, factor = scale(shown.unit, [shown.top, *(bar.value.high for bar in bars)])
    rows = [
        {
            "group": bar.group,
            "name": bar.name,
            "value": bar.value.centre / factor,
            "low": bar.value.low / factor,
            "high": bar.value.high / factor,
            "said": measured(bar.value, shown.unit),
            "range": span(bar.value, shown.unit),
        }
        for bar in bars
    ]
    said = "; ".join(f"{row['group']}, {row['name']}: {row['said']}" for row in rows)
    # A bar has a length only from zero: where small values would be pressed flat, points stand on a logarithmic axis.
    centres, least = [bar.value.centre for bar in bars], min(bar.value.low for bar in bars)
    far = not shown.top and least > 0 and base.wide_apart(centres, _FAR)
    ranges = f"{'Points' if far else 'Bars'}: the median of the trials. Strokes: the range of all of them."
    values = [bound / factor for bar in bars for bound in (bar.value.low, bar.value.high)]
    note = " ".join(filter(None, (ranges if any(row["low"] != row["high"] for row in rows) else "", shown.note)))
    return [
        Chart(
            shown.id,
            shown.title,
            f"{shown.title}. {said}.",
            base.specification(
                _layers(groups, names, _height(values, shown.top / factor, far), far), {"bars": rows}, _HEIGHT
            ),
            shown.table or _table(rows, groups, names),
            suffix + (", logarithmic" if far else ""),
            base.keys(names, "circle" if far else "square"),
            note,
            wide=shown.wide,
        )
    ]


def _height(values: list[float], top: float, far: bool) -> dict[str, Any]:
    """Of the vertical axis: from zero, to `top` where that is given, or logarithmic."""
    if far:
        kind, axis = base.value_scale(values, 1.0)
        return {"type": "quantitative", "scale": kind, "axis": {**axis, "title": None}}
    domain = {"domain": [0, top]} if top else {"zero": True}
    return {"type": "quantitative", "scale": domain, "axis": {"title": None, "tickCount": 5, "format": ",~f"}}


def _layers(groups: list[str], names: list[str], height: dict[str, Any], far: bool) -> list[dict[str, Any]]:
    axis = {"title": None, "labelAngle": 0, "ticks": False, "domain": False, "labelPadding": 8}
    place: dict[str, Any] = {
        "x": {"field": "group", "type": "nominal", "sort": groups, "axis": axis, "scale": {"paddingInner": 0.25}},
        "xOffset": {"field": "name", "type": "nominal", "sort": names},
    }
    tip = [{"field": "group"}, {"field": "name"}, {"field": "said", "title": "median"}, {"field": "range"}]
    shown = {**place, "y": {"field": "value", **height}, "color": _colour(names), "tooltip": tip}
    stroke = {**place, "y": {"field": "low", **height}, "y2": {"field": "high"}}
    mark: dict[str, Any] = {"type": "point", "filled": True, "size": 80, "opacity": 1} if far else {"type": "bar"}
    rule = {"type": "rule", "color": "@ink", "strokeWidth": 1.4}
    layers: list[dict[str, Any]] = [
        {"data": {"name": "bars"}, "mark": mark, "encoding": shown},
        {"data": {"name": "bars"}, "mark": rule, "encoding": stroke},
    ]
    return layers[::-1] if far else layers  # a point over its stroke, a stroke over its bar


def _colour(names: list[str]) -> dict[str, Any]:
    return {**base.colour(names), "field": "name"}


def _table(rows: Sequence[dict[str, Any]], groups: Sequence[str], names: Sequence[str]) -> Table:
    cells = {(row["group"], row["name"]): f"{row['said']} ({row['range']})" for row in rows}
    return Table(
        ("", *names), tuple((group, *(cells.get((group, name), "–") for name in names)) for group in groups), True
    )
