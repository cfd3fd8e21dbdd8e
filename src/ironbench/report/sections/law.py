"""The fitted scalability curve with its interval, dashed beyond what was measured, and the law's figures in a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ironbench.analyse.scaling import Scaling
from ironbench.analyse.study import Study
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Depth, Key, Table, clients_axis
from ironbench.report.numbers import quantity
from ironbench.report.section import Section
from ironbench.stats.scalability import Estimate
from ironbench.words import counted, in_percent

PLACE = 1000


def sections(study: Study) -> Iterator[Section]:
    found = study.scalings
    drawn = scalability(found, study.counts[1]) if found else []
    charts = tuple(replace(chart, depth=Depth.DOCUMENT) for chart in drawn)
    yield Section("law", "Scalability", charts=charts, sentences=sentences(found), at_end=True)


_HEIGHT = 320


def scalability(found: Sequence[Scaling], units: str) -> list[Chart]:
    """None where no system has a curve. `units`: of the work, e.g. transactions."""
    if not found:
        return []
    names = [one.name for one in found]
    curve = [_point(one, band, part) for one in found for part in _PARTS for band in _within(one, part)]
    means = [
        {"system": one.name, "clients": row.clients, "value": row.measured, "said": quantity(row.measured, "1/s")}
        for one in found
        for row in one.fit.residuals
    ]
    x = clients_axis(sorted({int(row.clients) for one in found for row in one.fit.residuals}))
    end = max(band.clients for one in found for band in one.curve)
    if x["scale"].get("domain"):
        x = {**x, "scale": {**x["scale"], "domain": [x["scale"]["domain"][0], end]}}
    chart = Chart(
        "scalability",
        "The scalability law's curve",
        " ".join(f"{one.name}: {' '.join(one.sentences)}" for one in found),
        base.specification(_layers(names, x), {"curve": curve, "means": means}, _HEIGHT),
        _table(found),
        f"{units}/s",
        (
            *base.keys(names),
            Key("95 % interval of the curve", "muted", "square"),
            Key("beyond the measured range", "muted", "dash"),
        ),
        wide=True,
    )
    return [chart]


def sentences(found: Sequence[Scaling]) -> tuple[str, ...]:
    """What the laws say, a paragraph per system."""
    alone = len(found) == 1
    return tuple(" ".join(one.sentences) if alone else f"{one.name}: {' '.join(one.sentences)}" for one in found)


def cautions(found: Sequence[Scaling]) -> list[str]:
    """What limits the use of the curves."""
    return [f"{one.name}: {text}" for one in found for text in one.cautions]


_PARTS = ("measured", "beyond")


def _within(one: Scaling, part: str) -> list[Any]:
    """Both parts share the point at which they meet."""
    last = one.fit.last
    return [band for band in one.curve if (band.clients <= last if part == "measured" else band.clients >= last)]


def _point(one: Scaling, band: Any, part: str) -> dict[str, Any]:
    # An interval that explodes beyond what was measured must not press the curve flat.
    most = 1.6 * max(row.measured for row in one.fit.residuals)
    return {
        "system": one.name,
        "part": part,
        "clients": round(band.clients, 3),
        "value": band.fitted,
        "low": min(band.low, most),
        "high": min(band.high, most),
    }


def _layers(names: list[str], x: dict[str, Any]) -> list[dict[str, Any]]:
    y: dict[str, Any] = {
        "field": "value",
        "type": "quantitative",
        "axis": {"title": None, "tickCount": 5, "format": ",~f"},
    }
    y["scale"] = {"zero": True}
    band = {
        "data": {"name": "curve"},
        "mark": {"type": "area", "opacity": 0.14},
        "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": base.colour(names)},
    }
    line: dict[str, Any] = {"type": "line", "strokeWidth": 2}
    marks = (line, {**line, "strokeDash": [5, 4]})
    lines = [
        {
            "data": {"name": "curve"},
            "transform": [{"filter": f"datum.part == '{part}'"}],
            "mark": mark,
            "encoding": {"x": x, "y": y, "color": base.colour(names)},
        }
        for part, mark in zip(_PARTS, marks, strict=True)
    ]
    tooltip = [
        {"field": "system", "title": "system"},
        {"field": "clients", "title": "clients"},
        {"field": "said", "title": "mean of the trials"},
    ]
    points = {
        "data": {"name": "means"},
        "mark": {"type": "point", "filled": True, "size": 48, "opacity": 0.85},
        "encoding": {"x": x, "y": y, "color": base.colour(names), "shape": base.shape(names), "tooltip": tooltip},
    }
    return [band, *lines, points]


def _table(found: Sequence[Scaling]) -> Table:
    rows: list[tuple[str, ...]] = [
        ("contention α", *(_share(one.fit.alpha) for one in found)),
        ("coherency β", *(_plain(one.fit.beta) for one in found)),
        ("one client alone γ", *(_rate(one.fit.gamma) for one in found)),
        ("clients at the knee 1/α", *(_plain(one.fit.knee) for one in found)),
        ("clients at the peak", *(_plain(one.fit.peak_clients) for one in found)),
        ("throughput at the peak", *(_rate(one.fit.peak_throughput) for one in found)),
        ("trials around the curve", *(f"± {quantity(one.fit.residual_error, 'share')}" for one in found)),
    ]
    clients = sorted({row.clients for one in found for row in one.fit.residuals})
    for count in clients:
        rows.append((f"measured over curve, {counted(count, 'client')}", *(_missed(one, count) for one in found)))
    return Table(("Universal Scalability Law", *(one.name for one in found)), tuple(rows))


def _missed(one: Scaling, clients: float) -> str:
    row = next((row for row in one.fit.residuals if row.clients == clients), None)
    return "" if row is None else f"{row.measured / row.fitted:.3f}"


def _plain(found: Estimate) -> str:
    return f"{_end(found.value, 'none')} ({_end(found.low, 'none')} to {_end(found.high, 'no end')})"


def _share(found: Estimate) -> str:
    return f"{in_percent(found.value, 2)} ({in_percent(found.low, 2)} to {in_percent(found.high, 2)})"


def _rate(found: Estimate) -> str:
    if math.isinf(found.high):
        return f"{_quantity(found.value)} ({_quantity(found.low)} to no end)"
    return f"{_quantity(found.value)} ({_quantity(found.low)} to {_quantity(found.high)})"


def _quantity(value: float) -> str:
    return quantity(value, "1/s") if math.isfinite(value) else "no end"


def _end(value: float, infinite: str) -> str:
    return infinite if math.isinf(value) else f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
