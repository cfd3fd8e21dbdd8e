"""Parts of a whole, a stacked bar per cell in a row under its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ironbench.report.charts import base, rows
from ironbench.report.charts.base import Key

_TOP, _BOTTOM = -0.04, 0.24
"""Edges of a bar, in rows from the middle of its row."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One row."""

    name: str
    parts: Mapping[str, float]
    """In the unit of the axis."""
    words: Mapping[str, str]
    """Each part's value as people read it."""
    said: str = ""
    """What stands at the right end above the bar."""


def stacked(bars: Sequence[Bar], colours: Mapping[str, str], x: dict[str, Any]) -> dict[str, Any]:
    """The specification. `colours`: part → token with `@`, in the order stacked; `x`: scale and axis."""
    names = rows.named([{"name": bar.name, "said": bar.said} for bar in bars])
    data = []
    for row, bar in zip(names, bars, strict=True):
        start = 0.0
        for part in colours:
            size = bar.parts.get(part, 0.0)
            place = {"top": row["place"] + _TOP, "bottom": row["place"] + _BOTTOM}
            data.append(
                {"cell": bar.name, "part": part, "from": start, "to": start + size, **place}
                | {"said": bar.words.get(part, "")}
            )
            start += size
    said = "said" if any(bar.said for bar in bars) else ""
    layers = [*rows.frame(len(bars), "cells", said), _bars(len(bars), colours, x)]
    return base.specification(layers, {"cells": names, "parts": data}, rows.height(len(bars)))


def keys(colours: Mapping[str, str]) -> tuple[Key, ...]:
    """The legend."""
    return tuple(Key(part, colour.removeprefix("@"), "square") for part, colour in colours.items())


def _bars(count: int, colours: Mapping[str, str], x: dict[str, Any]) -> dict[str, Any]:
    y = rows.place(count)
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
            "tooltip": [{"field": "cell"}, {"field": "part"}, {"field": "said", "title": "value"}],
        },
    }
