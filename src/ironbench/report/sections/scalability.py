"""Curves of the scalability law: fitted to the sweeps of runs, and to cells of a lab that differ in clients alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ironbench.analyse.scaling import Scaling, share_of_work
from ironbench.analyse.study import Study
from ironbench.analyse.subjects import counted_in
from ironbench.model.record import Record
from ironbench.model.sample import sampled
from ironbench.report import theme
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Depth, Key, Table, clients_axis
from ironbench.report.findings import metric_words
from ironbench.report.numbers import measured, quantity, scale, span, unit_of
from ironbench.report.section import Section, with_rows
from ironbench.stats.scalability import ENOUGH_DISTINCT, Estimate, Fit
from ironbench.words import counted, grouped

PLACE = 1000


def sections(study: Study) -> Iterator[Section]:
    scalings = study.scalings
    drawn = scalability(scalings, study.counts[1]) if scalings else []
    charts = tuple(replace(chart, depth=Depth.DOCUMENT) for chart in drawn)
    yield Section("law", "Scalability", charts=charts, sentences=sentences(scalings), at_end=True)
    lead = _LEAD if any(curve.fit for curve in study.growths) else ""
    yield Section("growth", "Scalability", lead, tuple(growth(study)), with_rows(laws(study)))


_HEIGHT = 320


def scalability(scalings: Sequence[Scaling], units: str) -> list[Chart]:
    """`units`: of the work, e.g. transactions."""
    if not scalings:
        return []
    names = [one.name for one in scalings]
    curve = [_point(one, band, part) for one in scalings for part in _PARTS for band in _within(one, part)]
    means = [
        {"system": one.name, "clients": row.clients, "value": row.measured, "text": quantity(row.measured, "1/s")}
        for one in scalings
        for row in one.fit.residuals
    ]
    x = clients_axis(sorted({int(row.clients) for one in scalings for row in one.fit.residuals}))
    end = max(band.clients for one in scalings for band in one.curve)
    if x["scale"].get("domain"):
        x = {**x, "scale": {**x["scale"], "domain": [x["scale"]["domain"][0], end]}}
    chart = Chart(
        "scalability",
        "The scalability law's curve",
        " ".join(f"{one.name}: {' '.join(one.sentences)}" for one in scalings),
        base.specification(_law_layers(names, x), {"curve": curve, "means": means}, _HEIGHT),
        _law_table(scalings),
        f"{units}/s",
        (
            *base.keys(names),
            Key("95 % interval of the curve", "muted", "square"),
            Key("beyond the measured range", "muted", "dash"),
        ),
        wide=True,
    )
    return [chart]


def sentences(scalings: Sequence[Scaling]) -> tuple[str, ...]:
    """A paragraph per system."""
    alone = len(scalings) == 1
    return tuple(" ".join(one.sentences) if alone else f"{one.name}: {' '.join(one.sentences)}" for one in scalings)


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


def _law_layers(names: list[str], x: dict[str, Any]) -> list[dict[str, Any]]:
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
        {"field": "text", "title": "mean of the trials"},
    ]
    points = {
        "data": {"name": "means"},
        "mark": {"type": "point", "filled": True, "size": 48, "opacity": 0.85},
        "encoding": {"x": x, "y": y, "color": base.colour(names), "shape": base.shape(names), "tooltip": tooltip},
    }
    return [band, *lines, points]


def _law_table(scalings: Sequence[Scaling]) -> Table:
    rows: list[tuple[str, ...]] = [
        ("contention α", *(share_of_work(one.fit.alpha) for one in scalings)),
        ("coherency β", *(_plain(one.fit.beta) for one in scalings)),
        ("one client alone γ", *(_rate(one.fit.gamma) for one in scalings)),
        ("clients at the knee 1/α", *(_plain(one.fit.knee) for one in scalings)),
        ("clients at the peak", *(_plain(one.fit.peak_clients) for one in scalings)),
        ("throughput at the peak", *(_rate(one.fit.peak_throughput) for one in scalings)),
        ("trials around the curve", *(f"± {quantity(one.fit.residual_error, 'share')}" for one in scalings)),
    ]
    clients = sorted({row.clients for one in scalings for row in one.fit.residuals})
    for count in clients:
        rows.append((f"measured over curve, {counted(count, 'client')}", *(_missed(one, count) for one in scalings)))
    return Table(("Universal Scalability Law", *(one.name for one in scalings)), tuple(rows))


def _missed(one: Scaling, clients: float) -> str:
    row = next((row for row in one.fit.residuals if row.clients == clients), None)
    return "" if row is None else f"{row.measured / row.fitted:.3f}"


def _plain(estimate: Estimate) -> str:
    return f"{_end(estimate.value, 'none')} ({_end(estimate.low, 'none')} to {_end(estimate.high, 'no end')})"


def _rate(estimate: Estimate) -> str:
    if math.isinf(estimate.high):
        return f"{_quantity(estimate.value)} ({_quantity(estimate.low)} to no end)"
    return f"{_quantity(estimate.value)} ({_quantity(estimate.low)} to {_quantity(estimate.high)})"


def _quantity(value: float) -> str:
    return quantity(value, "1/s") if math.isfinite(value) else "no end"


def _end(value: float, infinite: str) -> str:
    return infinite if math.isinf(value) else f"{value:.3g}" if abs(value) < 1000 else grouped(value)


_LEAD = (
    "The line is the Universal Scalability Law, fitted to all trials. Contention is the share of work that only one"
    " client can do at a time. Coherency is the cost of keeping clients consistent with each other. Beyond the "
    "knee, more clients mostly wait."
)


_WANTED = (("throughput", 320), ("response_time_p99_s", 240))
_LOG_TIMES = 40
_STEPS = 48
_FITTED = (Key("fitted law", "muted", "line"), Key("95 % interval of the law", "muted", "square"))


def growth(study: Study) -> list[Chart]:
    """Empty where no cells differ in clients alone, or with too many curves to distinguish."""
    if not 0 < len(study.growths) <= theme.SYSTEMS:
        return []
    return [
        _chart(study, metric, height)
        for metric, height in _WANTED
        if any(_has(record, metric) for curve in study.growths for record in curve.trials)
    ]


def _has(record: Record, metric: str) -> bool:
    return metric in record.metrics and sampled(record, metric)


def _chart(study: Study, metric: str, height: int) -> Chart:
    names = [curve.name for curve in study.growths]
    unit = unit_of(metric)
    values = [record.metrics[metric] for c in study.growths for record in c.trials if _has(record, metric)]
    suffix, factor = scale(unit, values)
    trials: list[dict[str, Any]] = [
        {
            "system": curve.name,
            "clients": record.cell.load.clients,
            "value": record.metrics[metric] / factor,
            "text": quantity(record.metrics[metric], unit),
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
            _growth_layers(names, x, y, bool(curves)), {"trials": trials, "medians": medians, "curves": curves}, height
        ),
        _growth_table(study, metric, unit),
        words + (", logarithmic" if kind.get("type") == "log" else ""),
        (*base.keys(names), Key("one trial", "muted", "circle"), *(_FITTED if curves else ())),
        wide=metric == "throughput",
    )


def _medians(study: Study, metric: str, factor: float) -> list[dict[str, Any]]:
    return [
        {"system": curve.name, "clients": clients, "value": metrics[metric].centre / factor}
        for curve in study.growths
        for clients, metrics in curve.summaries.items()
        if metric in metrics
    ]


def _curves(study: Study, factor: float) -> list[dict[str, Any]]:
    """The fitted law from the fewest to the most clients measured; beyond, it would be a prediction."""
    points = []
    for curve in study.growths:
        if curve.fit is not None:
            first, last = curve.fit.first, curve.fit.last
            places = [first * (last / first) ** (step / _STEPS) for step in range(_STEPS + 1)]
            points += [
                {
                    "system": curve.name,
                    "clients": point.clients,
                    "value": point.fitted / factor,
                    "low": point.low / factor,
                    "high": point.high / factor,
                }
                for point in curve.fit.band(places)
            ]
    return points


def _growth_layers(names: list[str], x: dict[str, Any], y: dict[str, Any], fitted: bool) -> list[dict[str, Any]]:
    tooltip = [
        {"field": "system", "title": "cells"},
        *({"field": name} for name in ("clients", "block", "status")),
        {"field": "text", "title": "value"},
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


def _growth_table(study: Study, metric: str, unit: str) -> Table:
    names = [curve.name for curve in study.growths]
    rows = []
    for clients in sorted({count for curve in study.growths for count in curve.summaries}):
        summaries = [curve.summaries.get(clients, {}).get(metric) for curve in study.growths]
        cells = [
            f"{measured(one, unit)}{f' ({span(one, unit)})' if one.n > 1 else ''}" if one else "" for one in summaries
        ]
        rows.append((str(clients), *cells))
    return Table(("clients", *names), tuple(rows))


def laws(study: Study) -> Table:
    """What the fitted law says of each curve, with 95 % intervals."""
    rows = []
    for curve in study.growths:
        fit = curve.fit
        if fit is None:
            continue
        values = (
            _estimate(fit.alpha, "share"),
            _estimate(fit.beta, "share"),
            _estimate(fit.gamma, "1/s"),
            _estimate(fit.knee, "1"),
            _estimate(fit.peak_clients, "1"),
            _estimate(fit.peak_throughput, "1/s"),
            _doubts_of(fit, curve.grows),
        )
        rows.append((curve.name, *values))
    head = ("cells", "contention", "coherency", "one client", "knee", "peak at", "peak", "to know")
    return Table(head, tuple(rows))


def _estimate(estimate: Estimate, unit: str) -> str:
    if not math.isfinite(estimate.value):
        return "none"
    high = quantity(estimate.high, unit) if math.isfinite(estimate.high) else "no end"
    return f"{quantity(estimate.value, unit)} ({quantity(estimate.low, unit)} to {high})"


def _doubts_of(fit: Fit, grows: bool) -> str:
    doubts = []
    if fit.misfit:
        doubts.append("the curve misses the means by more than repeats differ; intervals are widened")
    if grows:
        doubts.append(f"the peak lies beyond the {fit.last:g} clients that were measured: a prediction")
    elif not fit.peak_is_certain:
        doubts.append("the peak may lie beyond what was measured")
    if len(fit.residuals) < ENOUGH_DISTINCT:
        doubts.append(f"few numbers of clients ({len(fit.residuals)})")
    return "; ".join(doubts)
