"""A metric over time: points with their intervals, the segments between change points, and where those are."""

from __future__ import annotations

from typing import Any

from ironbench.report import wording
from ironbench.report.cell import CONFIDENCE, Missing, TableCell, count
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Key, Table
from ironbench.report.findings import NO_INTERVAL, metric_words
from ironbench.report.numbers import moment, scale, times, unit_of
from ironbench.study.history import History, HistoryLine, HistoryPoint

_LONGEST = 14
"""Characters of a label below the axis."""


def history(one: History, id: str) -> Chart:
    unit, order = unit_of(one.metric), one.order
    ends = [end for point in order for end in (point.interval or (point.value,))]
    suffix, factor = scale(unit, ends)
    places = {point.started_at + point.name: place for place, point in enumerate(order)}
    data: dict[str, list[dict[str, Any]]] = {
        "judged": [],
        "single": [],
        "spikes": [],
        "segments": [],
        "changes": [],
        "flagged": [],
    }
    for line in one.lines:
        at = [places[point.started_at + point.name] for point in line.points]
        for place, point in enumerate(line.points):
            kind = "spikes" if place in line.spikes else "judged" if point.judged else "single"
            row = _row(line, point, at[place], unit, factor)
            data[kind].append(row)
            data["flagged"] += [row] if point.flagged else []
        for first, last in line.segments if not line.open_question else ():
            mean = line.mean(first, last)
            data["segments"].append(
                {"system": line.name, "place": at[first] - 0.3, "end": at[last] + 0.3, "value": mean / factor}
            )
        for change in line.changes:
            text = f"{times(change.ratio)} from {line.points[change.place].name}"
            data["changes"].append({"place": at[change.place] - 0.5, "text": text, "label": times(change.ratio)})
    names = [line.name for line in one.lines]
    drawn = {kind: rows for kind, rows in data.items() if rows}
    keys = [*base.keys(names)]
    keys += [Key("hollow: too few trials for a verdict", "muted", "hollow")] if data["single"] else []
    keys += [Key("cross: apart from the points around it", "muted", "cross")] if data["spikes"] else []
    marked = " ?: every trial of the point is flagged." if data["flagged"] else ""
    keys += [Key("change point, with the ratio of the means", "warn", "dash")] if data["changes"] else []
    words = metric_words(one.metric)
    return Chart(
        id,
        f"{words.capitalize()} over time",
        _alt(one, words),
        base.specification(_layers(names, drawn, [point.name[:_LONGEST] for point in order], ends, factor), drawn, 300),
        points_table(one),
        "per second" if suffix == "/s" else suffix or words,
        tuple(keys),
        "Whiskers: 95 % intervals by the spread of a point's own trials. The axis need not begin at 0." + marked,
        wide=True,
    )


def points_table(one: History) -> Table:
    unit = unit_of(one.metric)
    rows = []
    for point in one.order:
        line = next(line for line in one.lines if point in line.points)
        value = _value(point, unit)
        start = (point.name, moment(point.started_at)[:10], line.name, count(len(point.trials)))
        interval = value.range if point.interval else Missing(NO_INTERVAL)
        rows.append((*start, value.alone, interval, _remark(line, line.points.index(point))))
    return Table(
        ("point", "date", "system", "trials", metric_words(one.metric), "interval", ""), tuple(rows), words=True
    )


def _remark(line: HistoryLine, place: int) -> str:
    change = next((one for one in line.changes if one.place == place), None)
    point = line.points[place]
    last = line.unconfirmed and place == max(at for at, one in enumerate(line.points) if one.judged)
    parts = [
        f"new segment, {times(change.ratio)}" if change else "",
        "spike" if place in line.spikes else "",
        "stands apart; the next point will tell" if last else "",
        "every trial flagged" if point.flagged else f"{point.suspect} flagged" if point.suspect else "",
        "" if point.judged else "too few trials",
    ]
    return ", ".join(filter(None, parts))


def _value(point: HistoryPoint, unit: str) -> TableCell:
    return TableCell(point.value, unit, *point.interval, CONFIDENCE) if point.interval else TableCell(point.value, unit)


def _row(line: HistoryLine, point: HistoryPoint, place: int, unit: str, factor: float) -> dict[str, Any]:
    names = {"system": line.name, "place": place, "point": point.name, "trials": len(point.trials)}
    return {**names, **base.figures(_value(point, unit), factor)}


def _layers(
    names: list[str], data: dict[str, list[dict[str, Any]]], labels: list[str], ends: list[float], factor: float
) -> list[dict[str, Any]]:
    x = base.places("", labels)
    x["axis"] |= {"title": None, "labelOverlap": "greedy", "labelAngle": 0, "labelBound": True, "labelSeparation": 6}
    low, high = min(ends) / factor, max(ends) / factor
    room = 0.08 * (high - low) or 0.05 * high or 1.0
    domain = [low - room, high + 2 * room]
    y: dict[str, Any] = {
        "field": "value",
        "type": "quantitative",
        "scale": {"domain": domain, "zero": False, "nice": False},
        "axis": {"tickCount": 5, "format": ",~f", "title": None},
    }
    colour, shape = base.colour(names), base.shape(names)
    tooltip = [{"field": name} for name in ("point", "system", "text", "trials")]
    layers: list[dict[str, Any]] = []
    if "segments" in data:
        rule = {"type": "rule", "strokeWidth": 7, "opacity": 0.22, "strokeCap": "butt"}
        layers.append(
            {
                "data": {"name": "segments"},
                "mark": rule,
                "encoding": {"x": x, "x2": {"field": "end"}, "y": y, "color": colour},
            }
        )
    if "changes" in data:
        dashed = {"type": "rule", "strokeDash": [4, 4], "color": "@warn", "strokeWidth": 1.6}
        text = {
            "type": "text",
            "align": "left",
            "baseline": "top",
            "dx": 4,
            "y": 0,
            "color": "@warn",
            "fontWeight": 600,
        }
        layers.append(
            {
                "data": {"name": "changes"},
                "mark": dashed,
                "encoding": {"x": x, "tooltip": [{"field": "text", "title": "change"}]},
            }
        )
        layers.append({"data": {"name": "changes"}, "mark": text, "encoding": {"x": x, "text": {"field": "label"}}})
    if "judged" in data:
        layers += base.whiskered("judged", x, y, (colour, shape), tooltip)
    for kind, mark in (("single", {"filled": False}), ("spikes", {"filled": True, "shape": "cross"})):
        if kind in data:
            looks = {"color": colour} | ({"shape": shape} if kind == "single" else {})
            drawn = {"type": "point", "size": 80, "opacity": 1, "strokeWidth": 1.6, **mark}
            layers.append(
                {"data": {"name": kind}, "mark": drawn, "encoding": {"x": x, "y": y, **looks, "tooltip": tooltip}}
            )
    if "flagged" in data:
        sign = {"type": "text", "text": "?", "dy": -14, "color": "@warn", "fontWeight": 700, "fontSize": 13}
        encoding = {"x": x, "y": y, "tooltip": tooltip}
        layers.append({"data": {"name": "flagged"}, "mark": sign, "encoding": encoding})
    return layers


def _alt(one: History, words: str) -> str:
    parts = []
    for line in one.lines:
        known = [f"{times(change.ratio)} from {line.points[change.place].name}" for change in line.changes]
        parts.append(f"{line.name}: {len(line.points)} points, {'; '.join(known) if known else 'no change point'}")
    return f"{words.capitalize()} of {one.work}, {wording.text(one.load)} over time. {'. '.join(parts)}."
