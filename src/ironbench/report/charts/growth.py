"""Throughput and response time against clients in a lab: every trial a point, a line through the medians."""

from __future__ import annotations

import math
from typing import Any

from ironbench.analyse.labstudy import LabStudy
from ironbench.analyse.subjects import counted_in
from ironbench.model.record import Record
from ironbench.model.sample import sampled
from ironbench.report import theme
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Key, Table
from ironbench.report.charts.curves import clients_axis
from ironbench.report.findings import metric_words
from ironbench.report.numbers import measured, quantity, scale, span, unit_of

_WANTED = (("throughput", 320), ("response_time_p99_s", 240))
_LOG_TIMES = 40
_STEPS = 48
_FITTED = (Key("line: fitted law", "muted", "line"), Key("its 95 % interval", "rule", "square"))


def growth(study: LabStudy) -> list[Chart]:
    """None where no cells differ in the number of clients alone, or too many curves to tell apart."""
    if not 0 < len(study.growths) <= theme.SYSTEMS:
        return []
    return [
        _chart(study, metric, height)
        for metric, height in _WANTED
        if any(_has(record, metric) for curve in study.growths for record in curve.trials)
    ]


def _has(record: Record, metric: str) -> bool:
    return metric in record.metrics and sampled(record, metric)


def _chart(study: LabStudy, metric: str, height: int) -> Chart:
    names = [curve.name for curve in study.growths]
    unit = unit_of(metric)
    values = [record.metrics[metric] for c in study.growths for record in c.trials if _has(record, metric)]
    suffix, factor = scale(unit, values)
    trials: list[dict[str, Any]] = [
        {
            "system": curve.name,
            "clients": record.cell.load.clients,
            "value": record.metrics[metric] / factor,
            "said": quantity(record.metrics[metric], unit),
            "block": record.block + 1,
            "status": record.status.value,
        }
        for curve in study.growths
        for record in curve.trials
        if _has(record, metric)
    ]
    medians = _medians(study, metric, factor)
    curves = _curves(study, factor) if metric == "throughput" else []
    kind, axis = base.value_scale([row["value"] for row in trials], math.inf if unit == "1/s" else _LOG_TIMES)
    x = clients_axis(sorted({row["clients"] for row in trials}))
    y = {"field": "value", "type": "quantitative", "axis": {**axis, "title": None}, "scale": kind}
    units = counted_in([record for curve in study.growths for record in curve.trials])
    words = f"{units[1]}/s" if unit == "1/s" else suffix
    return Chart(
        f"growth-{metric}",
        f"{metric_words(metric).capitalize()} against clients",
        _alt(medians, metric, unit, factor),
        base.specification(
            _layers(names, x, y, bool(curves)), {"trials": trials, "medians": medians, "curves": curves}, height
        ),
        _table(study, metric, unit),
        words + (", logarithmic" if kind.get("type") == "log" else ""),
        (*base.keys(names), Key("one trial", "muted", "circle"), *(_FITTED if curves else ())),
        wide=metric == "throughput",
    )


def _medians(study: LabStudy, metric: str, factor: float) -> list[dict[str, Any]]:
    return [
        {"system": curve.name, "clients": clients, "value": found[metric].centre / factor}
        for curve in study.growths
        for clients, found in curve.summaries.items()
        if metric in found
    ]


def _curves(study: LabStudy, factor: float) -> list[dict[str, Any]]:
    """The fitted law from the fewest to the most clients measured; beyond, it would be a prediction."""
    found = []
    for curve in study.growths:
        if curve.fit is not None:
            first, last = curve.fit.first, curve.fit.last
            places = [first * (last / first) ** (step / _STEPS) for step in range(_STEPS + 1)]
            found += [
                {
                    "system": curve.name,
                    "clients": point.clients,
                    "value": point.fitted / factor,
                    "low": point.low / factor,
                    "high": point.high / factor,
                }
                for point in curve.fit.band(places)
            ]
    return found


def _layers(names: list[str], x: dict[str, Any], y: dict[str, Any], fitted: bool) -> list[dict[str, Any]]:
    tooltip = [
        {"field": "system", "title": "cells"},
        *({"field": name} for name in ("clients", "block", "status")),
        {"field": "said", "title": "value"},
    ]
    line = {
        "data": {"name": "curves" if fitted else "medians"},
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {"x": x, "y": y, "color": base.colour(names)},
    }
    band = {
        "data": {"name": "curves"},
        "mark": {"type": "area", "opacity": 0.14},
        "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": base.colour(names)},
    }
    point = {
        "data": {"name": "trials"},
        "mark": {"type": "point", "filled": True, "size": 40, "opacity": 0.6},
        "encoding": {"x": x, "y": y, "color": base.colour(names), "shape": base.shape(names), "tooltip": tooltip},
    }
    return [band, line, point] if fitted else [line, point]


def _alt(medians: list[dict[str, Any]], metric: str, unit: str, factor: float) -> str:
    words = []
    for name in dict.fromkeys(row["system"] for row in medians):
        own = [row for row in medians if row["system"] == name]
        first, last = own[0], own[-1]
        words.append(
            f"{name}: {quantity(first['value'] * factor, unit)} with {first['clients']} to "
            f"{quantity(last['value'] * factor, unit)} with {last['clients']} clients"
        )
    return f"{metric_words(metric).capitalize()} against clients. {'; '.join(words)}."


def _table(study: LabStudy, metric: str, unit: str) -> Table:
    names = [curve.name for curve in study.growths]
    rows = []
    for clients in sorted({count for curve in study.growths for count in curve.summaries}):
        found = [curve.summaries.get(clients, {}).get(metric) for curve in study.growths]
        cells = [f"{measured(one, unit)}{f' ({span(one, unit)})' if one.n > 1 else ''}" if one else "" for one in found]
        rows.append((str(clients), *cells))
    return Table(("clients", *names), tuple(rows))
