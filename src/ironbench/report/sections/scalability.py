"""Curves of the Universal Scalability Law, which are fitted to the sweeps of runs, or to configurations of a lab that
differ only in the number of clients."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ironbench.model.record import Record
from ironbench.model.sample import sampled
from ironbench.report import theme, wording
from ironbench.report.cell import EMPTY, Missing, Row, TableCell, count, with_range
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Depth, Key, Table, clients_axis
from ironbench.report.numbers import quantity, scale, unit_of
from ironbench.report.page import Section, with_rows
from ironbench.report.wording.answers.ratios import metric_words
from ironbench.report.wording.terms import label
from ironbench.stats.scalability import ENOUGH_DISTINCT, Fit
from ironbench.study.scaling import BEYOND, Scaling
from ironbench.study.study import Study
from ironbench.study.subjects import counted_in
from ironbench.words import counted, upper_first

PLACE = 1000


def sections(study: Study) -> Iterator[Section]:
    scalings = study.scalings
    drawn = scalability(scalings, study.counts[1]) if scalings else []
    charts = tuple(replace(chart, depth=Depth.DOCUMENT) for chart in drawn)
    yield Section("law", "Scalability", charts=charts, sentences=sentences(scalings), printed_at_end=True)
    lead = _LEAD if any(curve.fit for curve in study.growths) else ""
    yield Section("growth", "Scalability", lead, tuple(growth(study)), with_rows(laws(study)))


_HEIGHT = 320


def scalability(scalings: Sequence[Scaling], units: str) -> list[Chart]:
    """Draws the curves fitted to sweeps. `units`: plural of the unit of work, such as transactions."""
    if not scalings:
        return []
    names = [one.name for one in scalings]
    curve = [point for one in scalings for point in _curve_points(one)]
    means = [
        {"system": one.name, "clients": row.clients, "value": row.measured, "text": quantity(row.measured, "1/s")}
        for one in scalings
        for row in one.fit.residuals
    ]
    x = clients_axis(sorted({int(row.clients) for one in scalings for row in one.fit.residuals}))
    end = max(one.fit.last for one in scalings) * BEYOND
    if x["scale"].get("domain"):
        x = {**x, "scale": {**x["scale"], "domain": [x["scale"]["domain"][0], end]}}
    chart = Chart(
        "scalability",
        "Fit of the Universal Scalability Law",
        " ".join(f"{one.name}: {' '.join(wording.sentences(one.sentences))}" for one in scalings),
        base.specification(_law_layers(names, x), {"curve": curve, "means": means}, _HEIGHT),
        _law_table(scalings),
        f"{units}/s",
        (*base.keys(names), Key("extrapolation", "muted", "dash")),
        wide=True,
    )
    return [chart]


def sentences(scalings: Sequence[Scaling]) -> tuple[str, ...]:
    """Returns a paragraph about the fitted curve of each system."""
    texts = [" ".join(wording.sentences(one.sentences)) for one in scalings]
    return tuple(
        texts if len(texts) == 1 else (f"{one.name}: {text}" for one, text in zip(scalings, texts, strict=True))
    )


_PARTS = ("measured", "beyond")


def _curve_points(one: Scaling) -> list[dict[str, Any]]:
    """Returns the points of a system's fitted curve as Vega data, in two parts: the measured range and the
    extrapolation. Both parts contain the end of the measured range, so that there is no gap between them."""
    first, last = one.fit.first, one.fit.last
    parts = zip(_PARTS, ((first, last), (last, last * BEYOND)), strict=True)
    return [
        {"system": one.name, "part": part, "clients": round(at, 3), "value": one.fit.curve.at(at)}
        for part, (start, end) in parts
        for at in (start + (end - start) * step / _STEPS for step in range(_STEPS + 1))
    ]


def _law_layers(names: list[str], x: dict[str, Any]) -> list[dict[str, Any]]:
    y: dict[str, Any] = {
        "field": "value",
        "type": "quantitative",
        "axis": {"title": None, "tickCount": 5, "format": ",~f"},
    }
    y["scale"] = {"zero": True}
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
    return [*lines, points]


def _law_table(scalings: Sequence[Scaling]) -> Table:
    rows: list[Row] = [
        ("contention α", *(_figure(one.fit.curve.alpha, "share") for one in scalings)),
        ("coherency β", *(_figure(one.fit.curve.beta, "1") for one in scalings)),
        ("throughput of one client γ", *(_figure(one.fit.curve.gamma, "1/s") for one in scalings)),
        ("clients at the knee 1/α", *(_figure(one.fit.curve.knee, "1") for one in scalings)),
        ("clients at the peak", *(_figure(one.fit.curve.peak_clients, "1") for one in scalings)),
        ("throughput at the peak", *(_figure(one.fit.curve.peak_throughput, "1/s") for one in scalings)),
        ("residual error", *(TableCell(one.fit.residual_error, "± share") for one in scalings)),
    ]
    clients = sorted({row.clients for one in scalings for row in one.fit.residuals})
    for number in clients:
        rows.append((f"measured / fitted, {counted(number, 'client')}", *(_missed(one, number) for one in scalings)))
    return Table(("Universal Scalability Law", *(one.name for one in scalings)), tuple(rows))


def _missed(one: Scaling, clients: float) -> TableCell | Missing:
    row = next((row for row in one.fit.residuals if row.clients == clients), None)
    return EMPTY if row is None else TableCell(row.measured / row.fitted, "ratio", bare=True)


_LEAD = (
    "The line shows the Universal Scalability Law, fitted to all trials. Contention is the share of the work "
    "that only one client can do at a time. Coherency is the cost of keeping the clients' views of shared data "
    "consistent. Beyond the knee, additional clients mostly wait."
)


_WANTED = (("throughput", 320), ("response_time_p99_s", 240))
_LOG_TIMES = 40
_STEPS = 48
_FITTED = (Key("fitted curve", "muted", "line"),)


def growth(study: Study) -> list[Chart]:
    """Draws the curves of a lab. A curve is fitted to configurations that differ only in the number of clients. Returns
    an empty list if there are no curves, or too many to distinguish."""
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
    names = [label(curve.name) for curve in study.growths]
    unit = unit_of(metric)
    values = [record.metrics[metric] for c in study.growths for record in c.trials if _has(record, metric)]
    suffix, factor = scale(unit, values)
    trials: list[dict[str, Any]] = [
        {
            "system": label(curve.name),
            "clients": record.cell.load.clients,
            "value": record.metrics[metric] / factor,
            "text": quantity(record.metrics[metric], unit),
            "block": record.block + 1,
            "status": record.status.word,
        }
        for curve in study.growths
        for record in curve.trials
        if _has(record, metric)
    ]
    table = _growth_table(study, metric, unit)
    medians = base.data(table, "clients", "system", factor)
    curves = _curves(study, factor) if metric == "throughput" else []
    kind, axis = base.value_scale([row["value"] for row in trials], math.inf if unit == "1/s" else _LOG_TIMES)
    x = clients_axis(sorted({row["clients"] for row in trials}))
    y = {"field": "value", "type": "quantitative", "axis": {**axis, "title": None}, "scale": kind}
    units = counted_in([record for curve in study.growths for record in curve.trials])
    words = f"{units[1]}/s" if unit == "1/s" else suffix
    return Chart(
        f"growth-{metric}",
        f"{upper_first(metric_words(metric))} against clients",
        f"{upper_first(metric_words(metric))} against clients. {base.each_line(table, 'clients')}.",
        base.specification(
            _growth_layers(names, x, y, bool(curves)), {"trials": trials, "medians": medians, "curves": curves}, height
        ),
        table,
        words + (", logarithmic" if kind.get("type") == "log" else ""),
        (*base.keys(names), Key("one trial", "muted", "circle"), *(_FITTED if curves else ())),
        wide=metric == "throughput",
    )


def _curves(study: Study, factor: float) -> list[dict[str, Any]]:
    """Returns the points of the fitted curves as Vega data. The curves end where the measured range ends, because
    further points would be predictions."""
    points = []
    for curve in study.growths:
        if curve.fit is not None:
            first, last = curve.fit.first, curve.fit.last
            points += [
                {"system": label(curve.name), "clients": at, "value": curve.fit.curve.at(at) / factor}
                for at in (first * (last / first) ** (step / _STEPS) for step in range(_STEPS + 1))
            ]
    return points


def _growth_layers(names: list[str], x: dict[str, Any], y: dict[str, Any], fitted: bool) -> list[dict[str, Any]]:
    tooltip = [
        {"field": "system", "title": "configurations"},
        *({"field": name} for name in ("clients", "block", "status")),
        {"field": "text", "title": "value"},
    ]
    line = {
        "data": {"name": "curves" if fitted else "medians"},
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {"x": x, "y": y, "color": base.colour(names)},
    }
    point = {
        "data": {"name": "trials"},
        "mark": {"type": "point", "filled": True, "size": 40, "opacity": 0.6},
        "encoding": {"x": x, "y": y, "color": base.colour(names), "shape": base.shape(names), "tooltip": tooltip},
    }
    return [line, point]


def _growth_table(study: Study, metric: str, unit: str) -> Table:
    names = [label(curve.name) for curve in study.growths]
    rows = []
    for clients in sorted({number for curve in study.growths for number in curve.summaries}):
        summaries = [curve.summaries.get(clients, {}).get(metric) for curve in study.growths]
        rows.append((count(clients), *(with_range(one, unit) if one else EMPTY for one in summaries)))
    return Table(("clients", *names), tuple(rows))


def laws(study: Study) -> Table:
    """Returns a row for each fitted curve, with its parameters and caveats."""
    rows = []
    for curve in study.growths:
        if curve.fit is None:
            continue
        law = curve.fit.curve
        values = (
            _figure(law.alpha, "share"),
            _figure(law.beta, "share"),
            _figure(law.gamma, "1/s"),
            _figure(law.knee, "1"),
            _figure(law.peak_clients, "1"),
            _figure(law.peak_throughput, "1/s"),
            _caveats(curve.fit),
        )
        rows.append((label(curve.name), *values))
    head = (
        *("configurations", "contention", "coherency", "throughput of one client", "clients at the knee"),
        *("clients at the peak", "peak throughput", "caveats"),
    )
    return Table(head, tuple(rows))


def _figure(value: float, unit: str) -> TableCell | Missing:
    return TableCell(value, unit) if math.isfinite(value) else Missing("none")


def _caveats(fit: Fit) -> str:
    caveats = []
    if fit.misfit:
        caveats.append("poor fit: the curve deviates from the means by more than the repeats vary")
    if fit.peak_is_beyond:
        caveats.append(f"the peak is extrapolated, because at most {counted(int(fit.last), 'client')} were measured")
    if len(fit.residuals) < ENOUGH_DISTINCT:
        caveats.append(f"only {counted(len(fit.residuals), 'number')} of clients measured")
    return "; ".join(caveats)
