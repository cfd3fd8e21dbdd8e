"""Charts with groups of bars. A line on each bar shows the range of the trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ironbench.report.cell import ABSENT, with_range
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Table
from ironbench.report.numbers import scale, unit_of
from ironbench.report.wording.answers.ratios import metric_words
from ironbench.study.factors import FactorValues
from ironbench.study.summarise import Summary
from ironbench.words import upper_first

_HEIGHT = 250
_FAR = 25
"""If the largest value is more than this number of times the smallest, the smallest bar would be invisible on an axis
that starts at zero."""


@dataclass(frozen=True, slots=True)
class Bar:
    group: str
    name: str
    """Name of the bar in the legend."""
    value: Summary


@dataclass(frozen=True, slots=True)
class Shown:
    """Title, unit and notes of a bar chart."""

    id: str
    title: str
    unit: str
    note: str = ""
    table: Table | None = None
    """The chart's table. By default, it contains the values of the bars."""
    top: float = 0.0
    """Upper end of the axis in base units. If it is 0, the values determine the upper end. Charts with the same `top`
    have the same scale and can be compared."""
    wide: bool = False


def grouped_bars(shown: Shown, bars: Sequence[Bar]) -> list[Chart]:
    """Draws the bars in one chart. Groups and names keep the order in which they first occur. Returns an empty list if
    there are no bars."""
    if not bars:
        return []
    names, groups = (list(dict.fromkeys(getattr(bar, field) for bar in bars)) for field in ("name", "group"))
    suffix, factor = scale(shown.unit, [shown.top, *(bar.value.high for bar in bars)])
    table = _table(bars, shown.unit, groups, names)
    rows = base.data(table, "group", "name", factor)
    # If the smallest bar would be invisible, points are drawn on a logarithmic axis. Bars cannot be drawn on such an
    # axis, because a bar must start at zero.
    centres, least = [bar.value.centre for bar in bars], min(bar.value.low for bar in bars)
    far = not shown.top and least > 0 and base.wide_apart(centres, _FAR)
    ranges = f"{'Points' if far else 'Bars'} show the median of the trials; lines show the range of the trials."
    values = [bound / factor for bar in bars for bound in (bar.value.low, bar.value.high)]
    note = " ".join(filter(None, (ranges if any(row["low"] != row["high"] for row in rows) else "", shown.note)))
    return [
        Chart(
            shown.id,
            shown.title,
            f"{shown.title}. {base.each_value(table)}.",
            base.specification(
                bar_layers(groups, names, _height(values, shown.top / factor, far), points=far), {"bars": rows}, _HEIGHT
            ),
            shown.table or table,
            suffix + (", logarithmic" if far else ""),
            base.keys(names, "circle" if far else "square"),
            note,
            wide=shown.wide,
        )
    ]


def _height(values: list[float], top: float, far: bool) -> dict[str, Any]:
    """Returns the vertical axis. If `far` is true, the axis is logarithmic. Otherwise, it starts at zero, and ends at
    `top` unless `top` is 0."""
    if far:
        kind, axis = base.value_scale(values, 1.0)
        return {"type": "quantitative", "scale": kind, "axis": {**axis, "title": None}}
    domain = {"domain": [0, top]} if top else {"zero": True}
    return {"type": "quantitative", "scale": domain, "axis": {"title": None, "tickCount": 5, "format": ",~f"}}


def bar_layers(
    groups: list[str],
    names: list[str],
    height: dict[str, Any],
    titles: tuple[str, str, str] = ("group", "name", "median"),
    points: bool = False,
    labels: bool = False,
) -> list[dict[str, Any]]:
    """Returns the Vega layers of grouped bars, with a line for the range of each bar. The data `bars` have the fields
    `group`, `name`, `value`, `low`, `high` and `text`.

    `height`: the vertical axis. `titles`: titles of group, name and value in tooltips. `points`: whether to draw points
    instead of bars. `labels`: whether to write the field `label` above each bar.
    """
    axis = {"title": None, "labelAngle": 0, "ticks": False, "domain": False, "labelPadding": 8}
    place: dict[str, Any] = {
        "x": {"field": "group", "type": "nominal", "sort": groups, "axis": axis, "scale": {"paddingInner": 0.25}},
        "xOffset": {"field": "name", "type": "nominal", "sort": names},
    }
    tip = [{"field": field, "title": title} for field, title in zip(("group", "name", "text"), titles, strict=True)]
    colour = {**base.colour(names), "field": "name"}
    shown = {**place, "y": {"field": "value", **height}, "color": colour, "tooltip": tip}
    stroke = {**place, "y": {"field": "low", **height}, "y2": {"field": "high"}}
    mark: dict[str, Any] = {"type": "point", "filled": True, "size": 80, "opacity": 1} if points else {"type": "bar"}
    rule = {"type": "rule", "color": "@ink", "strokeWidth": 1.4}
    layers: list[dict[str, Any]] = [
        {"data": {"name": "bars"}, "mark": mark, "encoding": shown},
        {"data": {"name": "bars"}, "mark": rule, "encoding": stroke},
    ]
    if points:
        return layers[::-1]  # the last layer is on top: points cover lines, but lines cover bars
    if labels:
        text = {"type": "text", "dy": -8, "fontSize": 11, "color": "@ink"}
        label = {**place, "y": {"field": "high", **height}, "text": {"field": "label"}}
        layers.append({"data": {"name": "bars"}, "mark": text, "encoding": label})
    return layers


def _table(bars: Sequence[Bar], unit: str, groups: Sequence[str], names: Sequence[str]) -> Table:
    cells = {(bar.group, bar.name): with_range(bar.value, unit) for bar in bars}
    rows = tuple((group, *(cells.get((group, name), ABSENT) for name in names)) for group in groups)
    return Table(("", *names), rows)


_MOST_CHARTS = 3
"""Maximum number of charts of query times. Each value of the second factor has its own chart, and further values have
none."""


def value_bars(levels: FactorValues | None) -> list[Chart]:
    """Draws the lab's metric as bars. Bars are grouped by the first factor, and their colour shows the value of the
    second factor."""
    if levels is None:
        return []
    title = f"{upper_first(metric_words(levels.metric))} by {levels.first} and {levels.second}"
    bars = [Bar(f"{levels.first}={cell.first}", f"{levels.second}={cell.second}", cell.value) for cell in levels.cells]
    return grouped_bars(Shown("levels", title, unit_of(levels.metric)), bars)


def value_queries(levels: FactorValues | None) -> list[Chart]:
    """Draws the time of every query, in a chart for each of the first values of the second factor. The charts have the
    same scale."""
    if levels is None:
        return []
    seconds = list(dict.fromkeys(cell.second for cell in levels.cells))[:_MOST_CHARTS]
    top = max((time.high for cell in levels.cells for time in cell.queries.values()), default=0.0)
    charts = []
    for number, second in enumerate(seconds):
        own = [cell for cell in levels.cells if cell.second == second]
        queries = sorted({query for cell in own for query in cell.queries})
        bars = [
            Bar(query, f"{levels.first}={cell.first}", cell.queries[query])
            for query in queries
            for cell in own
            if query in cell.queries
        ]
        title = f"Query times, {levels.second}={second}"
        charts += grouped_bars(Shown(f"levels-queries-{number}", title, "s", top=top, wide=True), bars)
    return charts
