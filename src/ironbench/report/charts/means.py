"""Means with their intervals as whiskers, side by side in places of an axis: what leads and cells at one load share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def whiskered(
    data: str,
    x: dict[str, Any],
    y: dict[str, Any],
    looks: tuple[dict[str, Any], dict[str, Any]],
    tooltip: Sequence[dict[str, Any]],
    **mark: Any,
) -> list[dict[str, Any]]:
    """Rows of `data` with `low` and `high` beside the field of `y`. `looks`: colour and shape; `mark`: of a mean."""
    colour, shape = looks
    whisker = {
        "data": {"name": data},
        "mark": {"type": "rule", "strokeWidth": 2.4, "strokeCap": "round"},
        "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour, "tooltip": tooltip},
    }
    mean = {
        "data": {"name": data},
        "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1, **mark},
        "encoding": {"x": x, "y": y, "color": colour, "shape": shape, "tooltip": tooltip},
    }
    return [whisker, mean]


def joined(data: str, x: dict[str, Any], y: dict[str, Any], colour: dict[str, Any], opacity: float) -> dict[str, Any]:
    """Thin, behind the means that it joins."""
    return {
        "data": {"name": data},
        "mark": {"type": "line", "strokeWidth": 1.3, "opacity": opacity},
        "encoding": {"x": x, "y": y, "color": colour},
    }


def places(title: str, labels: Sequence[str] | Sequence[Sequence[str]]) -> dict[str, Any]:
    """An axis of equally distant places, a label each; of several lines where it is a list."""
    return {
        "field": "place",
        "type": "quantitative",
        "scale": {"domain": [-0.5, len(labels) - 0.5], "nice": False, "zero": False},
        "axis": {
            "title": title,
            "values": list(range(len(labels))),
            "labelExpr": f"{json.dumps(labels, ensure_ascii=False)}[datum.value]",
            "ticks": False,
        },
    }
