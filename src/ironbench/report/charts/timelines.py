"""Charts over time: a typical trial of each system, and the I/O of the system's devices during this trial."""

from __future__ import annotations

import math
from typing import Any

from ironbench.report import wording
from ironbench.report.cell import Row, TableCell
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Key, Table
from ironbench.report.numbers import quantity, scale, unit_of
from ironbench.report.waits import device_role
from ironbench.study.study import Study
from ironbench.study.timelines import TimelineSeries

_TITLES = {
    "throughput": ("Throughput over time", ""),
    "transactions_per_min": ("Transactions per minute over time", ""),
    "response_time_mean_s": ("Mean response time over time", ""),
    "response_time_p50_s": ("Median response time over time", ""),
    "response_time_p95_s": ("95th-percentile response time over time", ""),
    "response_time_p99_s": ("99th-percentile response time over time", ""),
    "errors": ("Errors over time", "errors/s"),
    "device_write_bytes_per_s": ("Device write throughput", ""),
    "device_read_bytes_per_s": ("Device read throughput", ""),
    "device_writes_per_s": ("Write IOPS", ""),
    "device_reads_per_s": ("Read IOPS", ""),
    "device_write_latency_s": ("Write latency", ""),
    "device_read_latency_s": ("Read latency", ""),
    "device_flushes_per_s": ("Flushes", ""),
    "device_flush_latency_s": ("Flush latency", ""),
    "device_utilisation_share": ("Device utilisation", ""),
}
DASHES = {"line": [1, 0], "dash": [6, 3], "dot": [2, 2]}
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400)
_FEW = 30
"""Points are marked on lines with at most this number of points. Without a mark, a line with a single point would be
invisible."""


def timelines(study: Study) -> list[Chart]:
    """Draws throughput, response times and errors over time. Errors are drawn only if there were any."""
    charts = []
    for metric in ("throughput", "response_time_p50_s", "response_time_p99_s", "errors"):
        lines = [
            (part.name, line)
            for part in study.parts
            for line in (part.timeline.lines if part.timeline else ())
            if line.metric == metric and (metric != "errors" or any(line.value))
        ]
        charts += _chart(study, metric, lines)
    return charts


def devices(study: Study) -> list[Chart]:
    """Returns a chart for each I/O metric that was measured on at least one device."""
    charts = []
    for metric in [name for name in _TITLES if name.startswith("device_")]:
        lines = [
            (part.name, line)
            for part in study.parts
            for line in (part.timeline.devices if part.timeline else ())
            if line.metric == metric
        ]
        charts += _chart(study, metric, lines)
    return charts


def _chart(study: Study, metric: str, lines: list[tuple[str, TimelineSeries]]) -> list[Chart]:
    step = max((part.timeline.step_s for part in study.parts if part.timeline), default=1.0)
    return over_time(metric, lines, [part.name for part in study.parts], study.counts[1], step)


def over_time(
    metric: str, lines: list[tuple[str, TimelineSeries]], names: list[str], counted: str, step_s: float
) -> list[Chart]:
    """Draws a metric over time, with a colour for each system in `names`. Returns an empty list if no line has two
    points.

    `lines`: pairs of a system's name and a time series. `counted`: plural of the unit of work. `step_s`: seconds per
    point.
    """
    if max((len(line.t_s) for _, line in lines), default=0) < 2:
        return []
    title, words = _TITLES[metric]
    words = f"{counted}/s" if metric == "throughput" else words
    unit = unit_of(metric)
    suffix, factor = scale(unit, [value for _, line in lines for value in line.value])
    rows: list[dict[str, Any]] = [
        {"system": name, "role": device_role(line.part), "t": t, "value": value / factor, "text": quantity(value, unit)}
        for name, line in lines
        for t, value in zip(line.t_s, line.value, strict=True)
    ]
    kind, axis = base.value_scale([row["value"] for row in rows], 60 if unit == "s" else math.inf)
    strokes = strokes_of([line.part for _, line in lines if line.part])
    few = max(len(line.t_s) for _, line in lines) <= _FEW
    table = _table(lines, unit)
    note = f"Each point covers {step_s:g} s." if few or step_s > 1 else ""
    layer = _layer(names, {"scale": kind, "axis": {**axis, "title": None}}, strokes, _seconds(lines), few)
    roles = tuple(Key(role, "muted", stroke) for role, stroke in strokes.items()) if len(strokes) > 1 else ()
    unit_text = words or {"/s": "per second", "%": "% of the time"}.get(suffix, suffix)
    if len(strokes) == 1:
        unit_text += f", {next(iter(strokes))} device"
    return [
        Chart(
            f"time-{metric}",
            title,
            f"{title}. {base.each_row(table)}.",
            base.specification([layer], {"line": rows}, 190),
            table,
            unit_text + (", logarithmic" if kind.get("type") == "log" else ""),
            (*base.keys(names, "line"), *roles),
            note,
            wide=metric == "throughput",
        )
    ]


def strokes_of(roles: list[str]) -> dict[str, str]:
    """Maps the name of each role to a stroke. Lines of data devices are solid, those of separate WAL devices dashed,
    and those of devices for temporary files dotted."""
    order = sorted(dict.fromkeys(roles), key=lambda role: ("data" not in role, "log" not in role, role))
    return dict(zip(map(device_role, order), (*DASHES, "dot", "dot", "dot"), strict=False))


def _seconds(lines: list[tuple[str, TimelineSeries]]) -> list[int]:
    """Returns the seconds at which the axis has ticks. There are at most about seven ticks."""
    last = max((line.t_s[-1] for _, line in lines if line.t_s), default=0.0)
    step = next((step for step in _STEPS if last / step <= 7), _STEPS[-1])
    return list(range(0, int(last) + 1, step))


def _layer(
    names: list[str], value: dict[str, Any], strokes: dict[str, str], seconds: list[int], few: bool
) -> dict[str, Any]:
    encoding: dict[str, Any] = {
        "x": {
            "field": "t",
            "type": "quantitative",
            "axis": {"title": "seconds", "values": seconds, "format": "d"},
            "scale": {"nice": False},
        },
        "y": {"field": "value", "type": "quantitative", **value},
        "color": base.colour(names),
        "tooltip": [{"field": name} for name in (("system", "role") if strokes else ("system",))]
        + [{"field": "t", "title": "second"}, {"field": "text", "title": "value"}],
    }
    if strokes:
        encoding["strokeDash"] = {
            "field": "role",
            "type": "nominal",
            "scale": {"domain": list(strokes), "range": [DASHES[stroke] for stroke in strokes.values()]},
        }
    mark: dict[str, Any] = {"type": "line", "strokeWidth": 1.7}
    if few:
        mark["point"] = {"size": 16}
    return {"data": {"name": "line"}, "mark": mark, "encoding": encoding}


def _table(lines: list[tuple[str, TimelineSeries]], unit: str) -> Table:
    rows: list[Row] = []
    for name, line in lines:
        ranked = sorted(line.value)
        if ranked:
            figures = (ranked[0], ranked[(len(ranked) - 1) // 2], ranked[-1])
            rows.append((_name(name, line), *(TableCell(value, unit) for value in figures)))
    return Table(("", "minimum", "median", "maximum"), tuple(rows))


def _name(name: str, line: TimelineSeries) -> str:
    return f"{name}, {device_role(line.part)}" if line.part else name


def typical_trials(study: Study) -> str:
    """Names the trials that are shown second by second."""
    ids = [part.timeline.trial for part in study.parts if part.timeline]
    return f"A typical trial of each system, {wording.text(study.place)}: {', '.join(ids)}." if ids else ""
