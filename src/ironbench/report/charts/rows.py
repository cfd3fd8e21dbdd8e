"""Charts of rows: each row has its name above its marks, so that long names need no margin and fit a phone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

STEP = 52
"""Height of a row."""
NAME, MARK, POINTS = -0.3, 0.02, 0.3
"""Where name, mark and single points stand in a row, in rows from its middle."""
_AXIS = 40


def height(rows: int) -> int:
    """Of the chart."""
    return rows * STEP + _AXIS


def place(rows: int, field: str = "place") -> dict[str, Any]:
    """The vertical axis: the first row on top, half a row to either side, nothing drawn."""
    return {
        "field": field,
        "type": "quantitative",
        "axis": None,
        "scale": {"domain": [rows - 0.5, -0.5], "nice": False, "zero": False},
    }


def frame(rows: int, names: str, said: str = "") -> list[dict[str, Any]]:
    """Layers with lines between the rows and a name to each; `said`: the field of a text at the right end.

    `names` is the dataset, whose rows hold `place`, `name`, and the offsets that `named` adds.
    """
    y = place(rows)
    lines: dict[str, Any] = {
        "data": {"name": names},
        "mark": {"type": "rule", "color": "@grid"},
        "encoding": {"y": {**y, "field": "line"}, "x": {"value": 0}, "x2": {"value": "width"}},
    }
    text: dict[str, Any] = {
        "data": {"name": names},
        "mark": _text("left", "@ink", {"expr": "width * 0.62" if said else "width"}),
        "encoding": {"y": {**y, "field": "above"}, "x": {"value": 0}, "text": {"field": "name"}},
    }
    layers = [lines, text]
    if said:
        right = _text("right", "@muted", {"expr": "width * 0.38"})
        encoding = {"y": {**y, "field": "above"}, "x": {"value": "width"}, "text": {"field": said}}
        layers.append({"data": {"name": names}, "mark": right, "encoding": encoding})
    return layers


def named(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with their places."""
    return [
        {**row, "place": at + MARK, "above": at + NAME, "below": at + POINTS, "line": at + 0.5}
        for at, row in enumerate(rows)
    ]


def _text(align: str, colour: str, limit: dict[str, str]) -> dict[str, Any]:
    return {
        "type": "text", "align": align, "baseline": "middle", "fontSize": 12.5, "color": colour, "limit": limit,
        "tooltip": None,
    }  # fmt: skip
