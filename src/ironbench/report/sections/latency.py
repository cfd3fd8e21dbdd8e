"""Percentiles of response times, and the results of each script."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from ironbench.catalogue import base_name, part_of
from ironbench.model.record import Record
from ironbench.report import wording
from ironbench.report.cell import ABSENT, EMPTY, UNKNOWN, Missing, Row, TableCell, centre, count
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Key, Table
from ironbench.report.numbers import quantity, scale
from ironbench.report.page import Section
from ironbench.study.study import Study, SubjectResults
from ironbench.study.timelines import Percentiles

PLACE = 1200


def sections(study: Study) -> Iterator[Section]:
    yield Section("latency", "Latency", charts=tuple(latency(study)), self_titled=True)
    by_script, tables = f"Results by script, {wording.text(study.place)}", tuple(scripts(study))
    several = any(len(part.main_trials) > 1 for part in study.parts)
    medians = (_MEDIANS,) if tables and several else ()
    yield Section("scripts", by_script, tables=tables, sentences=medians, printed_at_end=True)


_SHOWN = (0.5, 0.9, 0.95, 0.99, 0.999, 0.9999)


def latency(study: Study) -> list[Chart]:
    """Draws the percentiles of response times in the trials at each system's peak, or at a target rate that the system
    sustained. In open loops, dashed lines show service times."""
    lines = [
        (part.name, percentiles)
        for part in study.parts
        for percentiles in (part.response, part.service)
        if percentiles and not _is_late(part)
    ]
    if not lines:
        return []
    names, drawn = [part.name for part in study.parts], {name for name, _ in lines}
    suffix, factor = scale("s", [seconds for _, line in lines for share, seconds in line.points if share <= 0.999])
    rows = [row for name, line in lines for row in _rows(name, line, factor)]
    table = _table(lines, study.counts[1])
    kind, axis = base.value_scale([row["value"] for row in rows], 25)
    layers = [_layer(names, drawn, {"scale": kind, "axis": {**axis, "title": None}}, study)]
    strokes = (Key("response time", "muted", "line"), Key("service time", "muted", "dash")) if study.open_loop else ()
    return [
        Chart(
            "latency",
            f"Response time by percentile, {wording.text(study.place)}",
            _alt(table, wording.text(study.place)),
            base.specification(layers, {"percentiles": rows}, 300),
            table,
            suffix + (", logarithmic" if kind.get("type") == "log" else ""),
            (*(key for key in base.keys(names, "line") if key.label in drawn), *strokes),
            f"At 99%, one {study.counts[0]} in a hundred took longer than the line shows."
            + _without_line([part for part in study.parts if part.name not in drawn]),
            wide=True,
        )
    ]


def _without_line(parts: Sequence[SubjectResults]) -> str:
    """Names the systems that have no line in the chart, and states the reason."""
    late = [part.name for part in parts if _is_late(part)]
    rest = [part.name for part in parts if not _is_late(part)]
    text = (
        f" Not shown: {', '.join(late)}, because the target rate was not sustained, so response times depend on "
        "the duration of the trial."
        if late
        else ""
    )
    return text + (f" Not shown: {', '.join(rest)}, because no response times were recorded." if rest else "")


def _is_late(part: SubjectResults) -> bool:
    """Returns whether the system did not sustain its target rate. In this case, response times grew until the end of
    the trial and are not shown."""
    return part.curve.rate is not None and not part.curve.rate.is_kept


def _rows(name: str, line: Percentiles, factor: float) -> list[dict[str, Any]]:
    kind = "service time" if line.metric == "service_time" else "response time"
    return [
        {"system": name, "kind": kind, "odds": 1 / (1 - share), "value": seconds / factor}
        | {"share": f"{share * 100:g}%", "text": quantity(seconds, "s")}
        for share, seconds in line.points
    ]


def _layer(names: list[str], drawn: Collection[str], value: dict[str, Any], study: Study) -> dict[str, Any]:
    encoding: dict[str, Any] = {
        "x": {
            "field": "odds",
            "type": "quantitative",
            "scale": {"type": "log", "nice": False},
            "axis": {
                "title": f"% of {study.counts[1]} that took no longer",
                "values": [2, 10, 100, 1000, 10000, 100000],
                "labelExpr": "format(100 * (1 - 1 / datum.value), '.6~f') + '%'",
                "grid": True,
                "labelOverlap": "greedy",
            },
        },
        "y": {"field": "value", "type": "quantitative", **value},
        "color": base.colour(names, drawn),
        "tooltip": [{"field": name} for name in ("system", "kind", "share", "text")],
    }
    if study.open_loop:
        encoding["strokeDash"] = {
            "field": "kind",
            "scale": {"domain": ["response time", "service time"], "range": [[1, 0], [5, 4]]},
        }
    return {
        "data": {"name": "percentiles"},
        "mark": {"type": "line", "strokeWidth": 2.2, "point": False},
        "encoding": encoding,
    }


def _alt(table: Table, place: str) -> str:
    by_line = zip(table.head[1:], zip(*(row[1:] for row in table.texts), strict=True), strict=True)
    shares = [share for share, *_ in table.texts]
    words = [
        f"{line}: {', '.join(f'{share} {text}' for share, text in zip(shares, times, strict=True) if text)}"
        for line, times in by_line
    ]
    return f"Percentiles {place}. {'; '.join(words)}."


def _table(lines: list[tuple[str, Percentiles]], units: str) -> Table:
    head = ("percentile", *(f"{name}, {line.metric.replace('_', ' ')}" for name, line in lines))
    rows: list[Row] = []
    for share in _SHOWN:
        values = [dict(line.points).get(share) for _, line in lines]
        if any(value is not None for value in values):
            cells = [EMPTY if value is None else TableCell(value, "s") for value in values]
            rows.append((f"{share * 100:g}%", *cells))
    rows.append((units, *(count(line.count) for _, line in lines)))
    return Table(head, tuple(rows))


P90 = "response_time_p90_s"
"""Metric that is recorded only for scripts with response time limits. Another section shows these scripts."""
_BY_SCRIPT = (
    *(("throughput", "1/s"), ("response_time_mean_s", "s"), ("response_time_p50_s", "s")),
    ("response_time_p99_s", "s"),
)
_MEDIANS = (
    "Throughput and mean response time are medians of the trials, computed for each script separately, so the "
    "throughputs of the scripts may not add up to the total. Percentiles are computed from the transactions of "
    "all trials together."
)


def scripts(study: Study) -> list[tuple[str, Table]]:
    """Returns a table for each system, with a row for each script."""
    tables = []
    for part in study.parts:
        metrics = part.metrics
        names = dict.fromkeys(part_of(name) for name in metrics if part_of(name).startswith("script="))
        rows = []
        for script in names:
            cells = [
                ABSENT
                if _is_late(part) and metric.startswith("response_time")
                else centre(metrics.get(f"{metric}{{{script}}}"), unit)
                for metric, unit in _BY_SCRIPT
            ]
            failed = _failed(script, part.main_trials)
            rows.append((script.removeprefix("script="), cells[0], failed, *cells[1:]))
        if len(rows) > 1 and not any(base_name(name) == P90 for name in metrics if part_of(name)):
            head = ("script", "throughput", "failed", "mean", "median", "99th percentile")
            tables.append((part.name, Table(head, tuple(rows))))
    return tables


def _failed(script: str, trials: Sequence[Record]) -> TableCell | Missing:
    """Returns the cell with the number of failed transactions of a script. Records contain the number only for scripts
    with failures, so a missing number means 0. The number is unknown if transactions failed, but no record contains
    failures by script."""
    of_parts = [name for trial in trials for name in trial.metrics if name.startswith("failed{")]
    if not of_parts and any(trial.metrics.get("failed", 1) for trial in trials):
        return UNKNOWN
    return count(sum(trial.metrics.get(f"failed{{{script}}}", 0.0) for trial in trials))
