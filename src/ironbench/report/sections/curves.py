"""Throughput and response time at each number of clients. Charts show a point for each trial, a line through the
medians, and a band for the range of the repeats."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ironbench.model.purpose import Purpose
from ironbench.model.record import Record, Status
from ironbench.model.sample import sampled
from ironbench.report import wording
from ironbench.report.cell import ABSENT, EMPTY, Row, TableCell, centre, count, failed, with_range
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Key, Table
from ironbench.report.numbers import failed_note, quantity, scale, unit_of
from ironbench.report.page import Bars, Section, with_rows
from ironbench.study.curve import CurvePoint
from ironbench.study.rate import Rate
from ironbench.words import counted, grouped
from ironbench.workloads.tpcc.figures import NOPM

if TYPE_CHECKING:
    from ironbench.study.study import Study, SubjectResults

PLACE = 500


def sections(study: Study) -> Iterator[Section]:
    yield Section(
        "curves",
        "Throughput and response time",
        charts=tuple(curves(study)),
        bars=bars(study),
        self_titled=True,
        printed_at_end=True,
    )
    yield Section("rates", "Target rates (open loop)", _LEAD_RATES, tables=with_rows(rates(study)), printed_at_end=True)


def bars(study: Study) -> Bars | None:
    """Returns a bar for each system at each number of clients, for formats without charts. The bars show NOPM if it was
    measured, and otherwise the throughput."""
    scored = any(NOPM in point.metrics for part in study.closed for point in part.curve.points)
    metric, title = (NOPM, "NOPM") if scored else ("throughput", "throughput")
    rows = [
        (f"{grouped(point.clients):>6}  {part.name}", TableCell(point.metrics[metric].centre, unit_of(metric)))
        for clients in sorted({point.clients for part in study.closed for point in part.curve.points})
        for part in study.closed
        for point in part.curve.points
        if point.clients == clients and metric in point.metrics
    ]
    return Bars(f"clients, {title}", tuple(rows)) if len(rows) > 1 else None


_LOG_TIMES = 40
_LABEL_WIDTH, _LABEL_HEIGHT = 0.15, 0.08
"""Size of the label of a peak in a narrow window. The width is a fraction of the horizontal axis. The height is a
fraction of the highest value."""
_MANY = 400
"""With more trials than this, points are drawn smaller, so that they do not hide each other."""


def curves(study: Study) -> list[Chart]:
    """Returns a chart for each metric of closed-loop trials. Open-loop trials have no such charts, because the target
    rate determines their throughput."""
    wanted = (
        (NOPM, "New-Orders per minute (NOPM)", "committed New-Orders per minute", 340),
        ("throughput", "Throughput", f"{study.counts[1]}/s", 340),
        ("response_time_p50_s", "Response time, median", "half of the transactions took no longer", 260),
        ("response_time_p99_s", "Response time, 99th percentile", "1 in 100 transactions took longer", 260),
    )
    return [
        _curve(study, metric, title, unit, height)
        for metric, title, unit, height in wanted
        if any(metric in point.metrics for part in study.closed for point in part.curve.points)
    ]


def _curve(study: Study, metric: str, title: str, words: str, height: int) -> Chart:
    names, shown = [part.name for part in study.parts], [part.name for part in study.closed]
    points = [(part.name, point) for part in study.closed for point in part.curve.points if metric in point.metrics]
    confirmations = [(part.name, record) for part in study.closed for record in part.curve.confirmations]
    title += " (trials of the sweep)" if confirmations else ""
    unit = unit_of(metric)
    suffix, factor = scale(unit, [point.metrics[metric].high for _, point in points])
    table = _table(shown, points, metric, unit)
    medians = base.data(table, "clients", "system", factor)
    trials = [_trial(name, record, metric, unit, factor) for name, point in points for record in point.trials]
    trials += [_trial(name, record, metric, unit, factor) for name, record in confirmations if metric in record.metrics]
    peaks = _peaks(study, factor) if metric == "throughput" else []
    counts = sorted({point.clients for _, point in points})
    x = base.clients_axis(counts)
    more_is_better = metric in (NOPM, "throughput")
    kind, axis = base.value_scale([row["value"] for row in trials], math.inf if more_is_better else _LOG_TIMES)
    if peaks:
        kind = {"domain": [0, _placed(peaks, trials, counts)], "nice": False}
    y = {"field": "value", "type": "quantitative", "axis": {**axis, "title": None}, "scale": kind}
    unit_text = words if more_is_better else f"{suffix}, {words}"
    some_suspect = len({row["status"] for row in trials}) > 1
    layers = [*_lines(names, x, y), *_points(names, x, y, some_suspect, 48 if len(trials) <= _MANY else 16)]
    if peaks:
        layers += _peak_labels(names, x)
    data = {"medians": medians, "trials": [row for row in trials if row["value"] is not None], "peaks": peaks}
    return Chart(
        metric,
        title,
        f"{title} against clients. {base.each_line(table, 'clients')}.",
        base.specification(layers, data, height),
        table,
        unit_text + (", logarithmic" if kind.get("type") == "log" else ""),
        (*(key for key in base.keys(names) if key.label in shown), *_marks(trials, some_suspect)),
        _note(points, wording.text(study.place) if peaks else ""),
        wide=more_is_better,
    )


def _note(points: list[tuple[str, CurvePoint]], place: str) -> str:
    """Explains the points, lines and bands of a chart, and the labels above them."""
    repeated = any(len(p.trials) > 1 for _, p in points)
    lines = "; lines connect the medians of the repeats, and bands show the range of the repeats" if repeated else ""
    texts = [f"Points are single trials{lines}."]
    texts += [f"Labels show the throughput {place}; a dotted line connects each label with its point."] if place else []
    return " ".join(texts)


def _trial(name: str, record: Record, metric: str, unit: str, factor: float) -> dict[str, Any]:
    value = record.metrics.get(metric) if sampled(record, metric) else None
    return {
        "system": name,
        "clients": record.cell.load.clients,
        "value": None if value is None else value / factor,
        "text": quantity(value, unit),
        "kind": Purpose.CONFIRMATION if record.purpose == Purpose.CONFIRMATION else Purpose.SWEEP,
        "status": record.status.word,
        "cause": wording.cause(record),
    }


def _peaks(study: Study, factor: float) -> list[dict[str, Any]]:
    return [
        {
            "system": part.name,
            "clients": part.curve.peak.clients,
            "value": part.curve.peak.throughput.high / factor,
            "text": quantity(part.curve.peak.throughput.centre, "1/s"),
        }
        for part in study.parts
        if part.curve.peak
    ]


def _placed(peaks: list[dict[str, Any]], trials: list[dict[str, Any]], counts: list[int]) -> float:
    """Sets the vertical position of the label of each peak, above all points. Labels that would overlap are in
    different rows. Returns the upper end of the axis."""
    most: float = max(row["value"] for row in (*trials, *peaks) if row["value"] is not None)
    far = base.wide_apart([float(count) for count in counts], base.LOG_CLIENTS)

    def place(clients: int) -> float:
        return math.log(clients) if far else float(clients)

    reach = _LABEL_WIDTH * max(place(counts[-1]) - place(counts[0]), 1e-9)
    rows: list[list[float]] = []
    for peak in sorted(peaks, key=lambda peak: float(peak["value"])):
        at = place(peak["clients"])
        free = (number for number, taken in enumerate(rows) if all(abs(at - other) >= reach for other in taken))
        row = next(free, len(rows))
        rows += [[]] if row == len(rows) else []
        rows[row].append(at)
        peak["label"] = most * (1 + _LABEL_HEIGHT * (row + 1))
    return most * (1 + _LABEL_HEIGHT * (len(rows) + 0.6))


def _marks(trials: list[dict[str, Any]], some_suspect: bool) -> list[Key]:
    """Returns the legend entries for hollow points and for rings, if the chart contains them."""
    keys = []
    if any(row["kind"] == Purpose.CONFIRMATION for row in trials):
        keys.append(Key("hollow point: confirmation trial", "muted", "hollow"))
    if some_suspect:
        keys.append(Key("dashed ring: flagged trial", "warn", "ring"))
    return keys


def _lines(names: list[str], x: dict[str, Any], y: dict[str, Any]) -> list[dict[str, Any]]:
    band = {
        "data": {"name": "medians"},
        "mark": {"type": "area", "opacity": 0.14, "interpolate": "linear"},
        "encoding": {
            "x": x,
            "y": {**y, "field": "low"},
            "y2": {"field": "high"},
            "color": base.colour(names),
        },
    }
    line = {
        "data": {"name": "medians"},
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {"x": x, "y": y, "color": base.colour(names)},
    }
    return [band, line]


def _points(
    names: list[str], x: dict[str, Any], y: dict[str, Any], some_suspect: bool, size: int
) -> list[dict[str, Any]]:
    """Returns layers with a point for each trial, and a ring around each flagged trial. If all trials are flagged,
    rings are left out, because a caveat already states it."""
    tooltip = [
        {"field": "system", "title": "system"},
        {"field": "clients", "title": "clients"},
        {"field": "text", "title": "value"},
        {"field": "kind", "title": "trial"},
        {"field": "status", "title": "status"},
    ]
    by_system = {"color": base.colour(names), "shape": base.shape(names)}
    encoding = {"x": x, "y": y, "tooltip": tooltip}
    swept = {
        "data": {"name": "trials"},
        "transform": [{"filter": "datum.kind == 'sweep'"}],
        "mark": {"type": "point", "filled": True, "size": size, "opacity": 0.85},
        "encoding": {**encoding, **by_system},
    }
    confirmed = {
        "data": {"name": "trials"},
        "transform": [{"filter": "datum.kind == 'confirmation'"}],
        "mark": {"type": "point", "filled": False, "fill": "@paper", "size": 62, "opacity": 1, "strokeWidth": 1.8},
        "encoding": {**encoding, **by_system},
    }
    doubtful = {
        "data": {"name": "trials"},
        "transform": [{"filter": f"datum.status == '{Status.SUSPECT.word}'"}],
        "mark": {
            "type": "point",
            "shape": "circle",
            "size": 190,
            "strokeWidth": 1.6,
            "stroke": "@warn",
            "strokeDash": [2, 2],
        },
        "encoding": encoding,
    }
    return [swept, confirmed, doubtful] if some_suspect else [swept, confirmed]


def _peak_labels(names: list[str], x: dict[str, Any]) -> list[dict[str, Any]]:
    """Draws the throughput of each peak as a label above the marks. A dotted line connects the label with the best
    trial at the peak. Other labels are drawn over this line."""
    label = {"field": "label", "type": "quantitative"}
    lead = {
        "data": {"name": "peaks"},
        "mark": {"type": "rule", "strokeDash": [1, 3], "strokeWidth": 1.4, "y2Offset": -6, "yOffset": 7},
        "encoding": {"x": x, "y": label, "y2": {"field": "value"}, "color": base.colour(names)},
    }
    text = {"type": "text", "baseline": "middle", "align": "center", "fontSize": 13, "fontWeight": 600}
    placed = {"x": x, "y": label, "text": {"field": "text"}}
    halo = {
        "data": {"name": "peaks"},
        "mark": {**text, "stroke": "@paper", "strokeWidth": 6, "strokeJoin": "round"},
        "encoding": placed,
    }
    figure = {"data": {"name": "peaks"}, "mark": text, "encoding": {**placed, "color": base.colour(names)}}
    return [lead, halo, figure]


def _table(names: list[str], points: list[tuple[str, CurvePoint]], metric: str, unit: str) -> Table:
    by_place = {(name, point.clients): point for name, point in points}
    rows = []
    for clients in sorted({point.clients for _, point in points}):
        known = [by_place.get((name, clients)) for name in names]
        rows.append((count(clients), *(EMPTY if one is None else _cell(one, metric, unit) for one in known)))
    return Table(("clients", *names), tuple(rows))


def _cell(point: CurvePoint, metric: str, unit: str) -> TableCell:
    """Returns the cell with the median and the range of a metric. A throughput also shows the percentage of failed
    transactions."""
    summary = point.metrics[metric]
    single = "n=1: no range" if summary.n == 1 else ""
    lost = failed_note(point.trials) if metric == "throughput" else ""
    return with_range(summary, unit, ", ".join(filter(None, (single, lost))))


_LEAD_RATES = (
    "In an open loop, transactions start at the target rate, no matter how slow the system is. If the system "
    "does not sustain the target rate, response times grow until the end of the trial."
)


def rates(study: Study) -> Table:
    """Returns a row for each target rate and number of clients. The row shows whether the system sustained the rate."""
    head = ("system", "target rate", "clients", "outcome", "completed", "failed", "trials", "median", "99th percentile")
    rows: list[Row] = []
    for part in study.parts:
        if (rate := part.subject.records[0].cell.load.rate) is None:
            continue
        asked = TableCell(rate, "rate")
        if not part.curve.rates:
            rows.append((part.name, asked, EMPTY, "no usable trial", *(EMPTY for _ in range(5))))
        for one in part.curve.rates:
            finished = one.finished
            slow = [one.metrics.get(f"response_time_{name}_s") for name in ("p50", "p99")]
            times = [centre(time, "s") if time and one.is_kept else ABSENT for time in slow]
            done = (wording.text(one.outcome), centre(finished, "1/s"), failed(one.trials), _tried(part, one))
            rows.append((part.name, asked, count(one.clients), *done, *times))
    return Table(head, tuple(rows))


def _tried(part: SubjectResults, one: Rate) -> TableCell:
    """Returns the cell with the number of trials. After a search, it counts only the confirmation trials."""
    note = f"confirmations of {counted(len(part.subject.usable), 'trial')}" if one.confirmed else ""
    return count(len(one.trials), note)
