"""Charts that consist of rows. The name of a row is above its marks and not beside them, so that long names fit on a
phone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ironbench.report.cell import EMPTY, TableCell, cell_text
from ironbench.report.charts import base
from ironbench.report.charts.base import Key

STEP = 52
NAME, MARK, POINTS = -0.3, 0.02, 0.3
"""Vertical positions of the name, the mark and the blocks' points in a row, as distances from the middle of the row in
fractions of its height."""
_AXIS = 40


def height(rows: int) -> int:
    return rows * STEP + _AXIS


def place(rows: int, field: str = "place") -> dict[str, Any]:
    """Returns the vertical axis, with the first row on top. The axis has neither a line nor labels."""
    return {
        "field": field,
        "type": "quantitative",
        "axis": None,
        "scale": {"domain": [rows - 0.5, -0.5], "nice": False, "zero": False},
    }


def frame(rows: int, names: str, value_field: str = "") -> list[dict[str, Any]]:
    """Returns layers that draw lines between the rows, and the name of each row.

    `names`: the dataset of rows, each with a `name` and the positions that `named` adds. `value_field`: name of a field
    with a text for the right end of each row.
    """
    y = place(rows)
    lines: dict[str, Any] = {
        "data": {"name": names},
        "mark": {"type": "rule", "color": "@grid"},
        "encoding": {"y": {**y, "field": "line"}, "x": {"value": 0}, "x2": {"value": "width"}},
    }
    text: dict[str, Any] = {
        "data": {"name": names},
        "mark": _text("left", "@ink", {"expr": "width * 0.62" if value_field else "width"}),
        "encoding": {"y": {**y, "field": "above"}, "x": {"value": 0}, "text": {"field": "name"}},
    }
    layers = [lines, text]
    if value_field:
        right = _text("right", "@muted", {"expr": "width * 0.38"})
        encoding = {"y": {**y, "field": "above"}, "x": {"value": "width"}, "text": {"field": value_field}}
        layers.append({"data": {"name": names}, "mark": right, "encoding": encoding})
    return layers


def with_positions(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Adds to each row the vertical positions of its name, mark and points, and of the line below it."""
    return [
        {**row, "place": at + MARK, "above": at + NAME, "below": at + POINTS, "line": at + 0.5}
        for at, row in enumerate(rows)
    ]


def _text(align: str, colour: str, limit: dict[str, str]) -> dict[str, Any]:
    return {
        "type": "text", "align": align, "baseline": "middle", "fontSize": 12.5, "color": colour, "limit": limit,
        "tooltip": None,
    }  # fmt: skip


_TOP, _BOTTOM = -0.04, 0.24
"""Upper and lower edge of a bar, as distances from the bar's vertical position in fractions of a row."""


@dataclass(frozen=True, slots=True)
class RowBar:
    name: str
    parts: Mapping[str, TableCell]
    total: TableCell | None = None
    """The total that is shown above the bar's right end."""


def stacked(
    bars: Sequence[RowBar], colours: Mapping[str, str], x: dict[str, Any], factor: float = 1.0
) -> dict[str, Any]:
    """Returns a chart of stacked bars.

    `colours`: maps each part to its colour token with `@`, in stacking order. `x`: scale and axis. `factor`: number of
    base units per unit of the axis.
    """
    names = with_positions([{"name": bar.name, "text": cell_text(bar.total) if bar.total else ""} for bar in bars])
    data = []
    for row, bar in zip(names, bars, strict=True):
        start = 0.0
        for part in colours:
            cell = bar.parts.get(part, EMPTY)
            size = (cell.value or 0.0) / factor if isinstance(cell, TableCell) else 0.0
            place = {"top": row["place"] + _TOP, "bottom": row["place"] + _BOTTOM}
            data.append(
                {"cell": bar.name, "part": part, "from": start, "to": start + size, **place} | {"text": cell_text(cell)}
            )
            start += size
    value_field = "text" if any(bar.total for bar in bars) else ""
    layers = [*frame(len(bars), "cells", value_field), _bars(len(bars), colours, x)]
    return base.specification(layers, {"cells": names, "parts": data}, height(len(bars)))


def keys(colours: Mapping[str, str]) -> tuple[Key, ...]:
    return tuple(Key(part, colour.removeprefix("@"), "square") for part, colour in colours.items())


def _bars(count: int, colours: Mapping[str, str], x: dict[str, Any]) -> dict[str, Any]:
    y = place(count)
    return {
        "data": {"name": "parts"},
        "mark": {"type": "rect", "stroke": "@paper", "strokeWidth": 0.6},
        "encoding": {
            "x": {"field": "from", "type": "quantitative", **x},
            "x2": {"field": "to"},
            "y": {**y, "field": "top"},
            "y2": {"field": "bottom"},
            "color": {
                "field": "part",
                "type": "nominal",
                "scale": {"domain": list(colours), "range": list(colours.values())},
            },
            "tooltip": [{"field": "cell"}, {"field": "part"}, {"field": "text", "title": "value"}],
        },
    }


def blocks(x: dict[str, Any], y: dict[str, Any]) -> dict[str, Any]:
    """Returns a layer with a small point for each block's ratio, below the mark of its row."""
    return {
        "data": {"name": "blocks"},
        "mark": {"type": "point", "filled": True, "size": 22, "color": "@muted", "opacity": 0.6, "shape": "circle"},
        "encoding": {
            "x": x,
            "y": {**y, "field": "below"},
            "tooltip": [{"field": "block", "title": "block"}, {"field": "text", "title": "ratio"}],
        },
    }


def ratio_axis(title: str, domain: Sequence[float], ticks: Sequence[float]) -> dict[str, Any]:
    """Returns a logarithmic axis of ratios."""
    return {
        "field": "ratio",
        "type": "quantitative",
        "scale": {"type": "log", "domain": domain, "nice": False, "clamp": True},
        "axis": {"title": title, "values": ticks, "format": "~r", "grid": True},
    }


def styles(field: str, known: Mapping[str, tuple[str, str]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the encodings of colour and shape, which both depend on the value of `field`. `known`: maps each value to
    the name of a colour without `@`, and a mark."""
    colour, shape = (
        {"field": field, "type": "nominal", "scale": {"domain": list(known), "range": ranges}}
        for ranges in ([f"@{token}" for token, _ in known.values()], [mark for _, mark in known.values()])
    )
    return colour, shape


def ratios(
    intervals: str,
    x: dict[str, Any],
    y: dict[str, Any],
    styles: tuple[dict[str, Any], dict[str, Any]],
    tooltip: Sequence[dict[str, Any]],
) -> list[dict[str, Any]]:
    """Returns layers with a whisker for each row of the dataset `intervals`, and a mark for each ratio in the dataset
    `effects`."""
    colour, shape = styles
    whisker = {
        "data": {"name": intervals},
        "mark": {"type": "rule", "strokeWidth": 3.2, "strokeCap": "round"},
        "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour, "tooltip": tooltip},
    }
    centre = {
        "data": {"name": "effects"},
        "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1, "stroke": "@paper", "strokeWidth": 1.2},
        "encoding": {"x": x, "y": y, "color": colour, "shape": shape, "tooltip": tooltip},
    }
    return [whisker, centre]
