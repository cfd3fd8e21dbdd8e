"""Colours and fonts of charts. Specifications contain tokens such as `@ink` instead of colours. The same specification
therefore works with the light and the dark theme.

The colours of systems are based on Okabe and Ito's palette for colour-blind readers. The colours are darker in the
light theme and lighter in the dark theme, for contrast with the background. Systems also have different marks, so that
charts can be read without colours.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ironbench.model.record import Status

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', 'Liberation Sans', sans-serif"
IMAGE_FONT = "Liberation Sans, DejaVu Sans, Noto Sans, Helvetica, Arial, sans-serif"
SYSTEMS = 8
MARKS = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke", "triangle-right")
_PATHS = {"stroke": "M-1,-.35H1V.35H-1Z", "tick": "M-.2,-1H.2V1H-.2Z"}
"""SVG paths of marks for which Vega has no filled symbol. Vega has no `tick`, and Vega's `stroke` is a line, which is
invisible without a stroke colour."""
STATUS_SIGNS = {
    Status.OK: "●",
    Status.SUSPECT: "?",
    Status.VOIDED: "×",
    Status.FAILED: "×",
    Status.CUT_SHORT: "×",
}
"""The sign for each status of a trial, in charts and on pages."""
LIGHT = {
    "ink": "#1c1f24", "muted": "#5d646e", "grid": "#e6e8eb", "rule": "#c3c8ce", "paper": "#ffffff", "warn": "#b45309",
    "s0": "#0067a5", "s1": "#c8500a", "s2": "#00805e", "s3": "#a8508b", "s4": "#8a6d00", "s5": "#3d8fbf",
    "s6": "#7a4fbf", "s7": "#6b7280",
    "p0": "#0067a5", "p1": "#d9822b", "p2": "#00936c", "p3": "#b4649b", "p4": "#9aa1ab", "p5": "#c0392b",
    "p6": "#e6e8eb", "p7": "#6fb1dc", "p8": "#c9a227",
}  # fmt: skip
DARK = {
    "ink": "#e6e8eb", "muted": "#a0a8b3", "grid": "#2b3038", "rule": "#4a515c", "paper": "#15181d", "warn": "#f5a54a",
    "s0": "#5cb3ea", "s1": "#f58b4c", "s2": "#3fc59c", "s3": "#e39bc9", "s4": "#dfb83a", "s5": "#9bd6f7",
    "s6": "#b79df0", "s7": "#b3b9c2",
    "p0": "#4a9fd6", "p1": "#eb9b4f", "p2": "#35b48d", "p3": "#cf8ab9", "p4": "#7b838e", "p5": "#ea6a5c",
    "p6": "#2b3038", "p7": "#8cc9ee", "p8": "#dfc05a",
}  # fmt: skip


def config(font: str = FONT) -> dict[str, Any]:
    """Returns Vega's configuration. Charts have horizontal grid lines only, no frame, and text in the page's
    typeface."""
    axis = {
        "labelColor": "@muted", "titleColor": "@muted", "tickColor": "@rule", "domainColor": "@rule",
        "gridColor": "@grid", "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal",
        "titlePadding": 8, "labelPadding": 5,
    }  # fmt: skip
    return {
        "font": font,
        "background": None,
        "view": {"stroke": None},
        "axis": axis,
        "axisX": {"grid": False},
        "axisY": {"domain": False, "ticks": False},
        "legend": {"disable": True},
        "title": {"color": "@ink", "anchor": "start", "fontSize": 14, "fontWeight": 600, "offset": 10},
        "style": {"guide-label": {"fontSize": 12}},
    }


def legend() -> dict[str, Any]:
    """Returns the configuration of the legends that Vega draws in pictures. HTML pages do not use Vega's legends,
    because these cannot wrap."""
    return {
        "orient": "top", "title": None, "labelColor": "@ink", "labelFontSize": 13, "symbolSize": 90, "offset": 8,
        "symbolStrokeWidth": 2, "columnPadding": 18, "columns": 4,
        "symbolOpacity": 1,
    }  # fmt: skip


def system_colours(names: list[str]) -> dict[str, Any]:
    return {"domain": names, "range": [f"@s{place % SYSTEMS}" for place in range(len(names))]}


def system_marks(names: list[str]) -> dict[str, Any]:
    return {"domain": names, "range": symbols(MARKS[place % len(MARKS)] for place in range(len(names)))}


def symbols(marks: Iterable[str]) -> list[str]:
    """Returns a symbol that Vega can draw for each mark: its name or an SVG path."""
    return [_PATHS.get(mark, mark) for mark in marks]


def coloured(specification: dict[str, Any], tokens: dict[str, str]) -> dict[str, Any]:
    """Returns the specification with its tokens, such as `@ink`, replaced by their colours."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: part if key in ("values", "datasets") else walk(part) for key, part in value.items()}
        if isinstance(value, list):
            return [walk(part) for part in value]
        if isinstance(value, str) and value.startswith("@"):
            return tokens.get(value[1:], value)
        return value

    result: dict[str, Any] = walk(json.loads(json.dumps(specification)))
    return result
