"""Waterfall chart of the transaction time of two configurations, with a bar for each wait class whose time changes."""

from __future__ import annotations

import math
from typing import Any

from ironbench.report import wording
from ironbench.report.cell import CONFIDENCE, EMPTY, Missing, TableCell
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Key, Table
from ironbench.report.numbers import scale
from ironbench.report.waits import wait_class
from ironbench.report.wording.values import CI
from ironbench.study.shares import ShareStep, Waterfall

_ROW = 30
_LEAST = 0.01
"""A wait class has a separate bar if it changed by at least this fraction of the transaction time."""
_REST = "other wait classes"
_LESS, _MORE, _WHOLE = "less time", "more time", "total"
_KINDS = {_WHOLE: "@p4", _LESS: "@s2", _MORE: "@s1"}


def chart(waterfall: Waterfall, id: str) -> Chart:
    suffix, factor = scale("s", [waterfall.before_s, waterfall.after_s])
    steps = _worth_a_row(waterfall)
    table = Table(
        ("wait class", "time", CI),
        (
            ("before", TableCell(waterfall.before_s, "s"), EMPTY),
            *((wait_class(step.part), TableCell(step.delta_s, "s", signed=True), _interval(step)) for step in steps),
            ("after", TableCell(waterfall.after_s, "s"), EMPTY),
        ),
    )
    data = [_whole(waterfall.before_s, factor)]
    level = waterfall.before_s
    for step in steps:
        data.append(_step(step, level, factor, step.clear or not waterfall.has_intervals))
        level += step.delta_s
    data.append(_whole(waterfall.after_s, factor))
    for row, (part, text, interval) in zip(data, table.texts, strict=True):
        row |= {"part": part, "text": text, "interval": interval}
    (words,) = wording.sentences([waterfall.note])
    sides = " to ".join(map(wording.terms.configuration, (waterfall.before, waterfall.after)))
    return Chart(
        id,
        f"From {sides}",
        f"Change of the time that a client spends per transaction, from {sides}. {words}",
        base.specification(_layers(data, suffix), {"steps": data}, len(data) * _ROW + 40),
        table,
        f"{suffix} per transaction",
        (
            *(Key(kind, colour.removeprefix("@"), "square") for kind, colour in _KINDS.items()),
            *([] if all(row["clear"] for row in data) else [Key(f"pale: the {CI} includes 0", "rule", "square")]),
        ),
        wording.text(waterfall.method),
    )


def _worth_a_row(waterfall: Waterfall) -> list[ShareStep]:
    """Returns the steps of the chart. Steps that are too small to be visible are combined into one step, which has no
    confidence interval."""
    least = _LEAST * max(waterfall.before_s, waterfall.after_s)
    small = [step for step in waterfall.steps if abs(step.delta_s) < least]
    if len(small) < 2:
        return list(waterfall.steps)
    rest = sum(step.delta_s for step in small)
    return [*(step for step in waterfall.steps if step not in small), ShareStep(rest, -math.inf, math.inf, _REST)]


def _interval(step: ShareStep) -> TableCell | Missing:
    return TableCell(None, "s", step.low_s, step.high_s, CONFIDENCE) if math.isfinite(step.low_s) else EMPTY


def _whole(seconds: float, factor: float) -> dict[str, Any]:
    return {"kind": _WHOLE, "clear": True, "from": 0.0, "to": seconds / factor, "end": seconds / factor}


def _step(step: ShareStep, level: float, factor: float, clear: bool) -> dict[str, Any]:
    low, high = sorted((level / factor, (level + step.delta_s) / factor))
    kind = _MORE if step.delta_s > 0 else _LESS
    return {"kind": kind, "clear": clear, "from": low, "to": high, "end": high}


def _layers(data: list[dict[str, Any]], suffix: str) -> list[dict[str, Any]]:
    y = {
        "field": "part",
        "type": "ordinal",
        "sort": None,
        "scale": {"domain": [row["part"] for row in data], "paddingInner": 0.35, "paddingOuter": 0.2},
        "axis": {"title": None, "ticks": False, "domain": False, "labelColor": "@ink"},
    }
    most = max(row["to"] for row in data)
    x = {
        "type": "quantitative",
        "scale": {"domain": [min(0.0, *(row["from"] for row in data)), most * 1.16], "nice": False},
        "axis": {"title": suffix, "tickCount": 5, "format": ",~r", "grid": True},
    }
    colour = {"field": "kind", "type": "nominal", "scale": {"domain": list(_KINDS), "range": list(_KINDS.values())}}
    tooltip = [
        {"field": "part", "title": "wait class"},
        {"field": "text", "title": "change"},
        {"field": "interval", "title": CI},
    ]
    bar = {
        "data": {"name": "steps"},
        "mark": {"type": "bar", "cornerRadius": 1},
        "encoding": {
            "y": y,
            "x": {**x, "field": "from"},
            "x2": {"field": "to"},
            "color": colour,
            "opacity": {"condition": {"test": "datum.clear", "value": 0.95}, "value": 0.4},
            "tooltip": tooltip,
        },
    }
    text = {
        "data": {"name": "steps"},
        "mark": {"type": "text", "align": "left", "dx": 5, "color": "@ink", "fontSize": 12},
        "encoding": {"y": y, "x": {**x, "field": "end"}, "text": {"field": "text"}},
    }
    return [bar, text]
