"""Throughput and response time against clients in a lab: every trial a point, a line through the medians."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ironbench.analyse.study import Study
from ironbench.analyse.subjects import counted_in
from ironbench.model.record import Record
from ironbench.model.sample import sampled
from ironbench.report import theme
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Key, Table, clients_axis
from ironbench.report.findings import metric_words
from ironbench.report.numbers import measured, quantity, scale, span, unit_of
from ironbench.report.section import Section, some
from ironbench.stats.scalability import ENOUGH_DISTINCT, Estimate, Fit

PLACE = 1010
_LEAD = (
    "The line is the Universal Scalability Law, fitted to all trials. Contention is the share of work that waits for "
    "something held by one at a time, coherency what clients pay to agree with each other; beyond the knee more "
    "clients mostly wait."
)


def sections(study: Study) -> Iterator[Section]:
    lead = _LEAD if any(curve.fit for curve in study.growths) else ""
    yield Section("growth", "Scalability", lead, tuple(growth(study)), some(laws(study)))


_WANTED = (("throughput", 320), ("response_time_p99_s", 240))
_LOG_TIMES = 40
_STEPS = 48
_FITTED = (Key("line: fitted law", "muted", "line"), Key("its 95 % interval", "rule", "square"))


def growth(study: Study) -> list[Chart]:
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


def _medians(study: Study, metric: str, factor: float) -> list[dict[str, Any]]:
    return [
        {"system": curve.name, "clients": clients, "value": found[metric].centre / factor}
        for curve in study.growths
        for clients, found in curve.summaries.items()
        if metric in found
    ]


def _curves(study: Study, factor: float) -> list[dict[str, Any]]:
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


def _table(study: Study, metric: str, unit: str) -> Table:
    names = [curve.name for curve in study.growths]
    rows = []
    for clients in sorted({count for curve in study.growths for count in curve.summaries}):
        found = [curve.summaries.get(clients, {}).get(metric) for curve in study.growths]
        cells = [f"{measured(one, unit)}{f' ({span(one, unit)})' if one.n > 1 else ''}" if one else "" for one in found]
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
    said = []
    if fit.misfit:
        said.append("the curve misses the means by more than repeats differ; intervals are widened")
    if grows:
        said.append(f"the peak lies beyond the {fit.last:g} clients that were measured: a prediction")
    elif not fit.peak_is_certain:
        said.append("the peak may lie beyond what was measured")
    if len(fit.residuals) < ENOUGH_DISTINCT:
        said.append(f"few numbers of clients ({len(fit.residuals)})")
    return "; ".join(said)
