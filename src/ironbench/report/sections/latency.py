"""Response time by percentile, the axis stretched towards the slow end: 90, 99, 99.9 % are equally far apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ironbench.analyse.study import Study
from ironbench.analyse.timelines import Percentiles
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Key, Table
from ironbench.report.numbers import count, quantity, scale
from ironbench.report.section import Section

PLACE = 1200


def sections(study: Study) -> Iterator[Section]:
    yield Section("latency", "Latency", charts=tuple(latency(study)), self_titled=True)


_SHOWN = (0.5, 0.9, 0.95, 0.99, 0.999, 0.9999)


def latency(study: Study) -> list[Chart]:
    """At each system's peak; in an open loop service time too, dashed."""
    lines = [(part.name, found) for part in study.parts for found in (part.response, part.service) if found]
    if not lines:
        return []
    names = [part.name for part in study.parts]
    suffix, factor = scale("s", [seconds for _, line in lines for share, seconds in line.points if share <= 0.999])
    rows = [row for name, line in lines for row in _rows(name, line, factor)]
    kind, axis = base.value_scale([row["value"] for row in rows], 25)
    layers = [_layer(names, {"scale": kind, "axis": {**axis, "title": None}}, study)]
    strokes = (Key("response time", "muted", "line"), Key("service time", "muted", "dash")) if study.open_loop else ()
    return [
        Chart(
            "latency",
            f"Response time by percentile, {study.place}",
            _alt(lines, study.place),
            base.specification(layers, {"percentiles": rows}, 300),
            _table(lines, study.counts[1]),
            suffix + (", logarithmic" if kind.get("type") == "log" else ""),
            (*base.keys(names, "line"), *strokes),
            f"Read it so: at 99 %, one {study.counts[0]} in a hundred took longer than the line shows.",
            wide=True,
        )
    ]


def _rows(name: str, line: Percentiles, factor: float) -> list[dict[str, Any]]:
    kind = "service time" if line.metric == "service_time" else "response time"
    return [
        {"system": name, "kind": kind, "odds": 1 / (1 - share), "value": seconds / factor}
        | {"share": f"{share * 100:g} %", "said": quantity(seconds, "s")}
        for share, seconds in line.points
    ]


def _layer(names: list[str], value: dict[str, Any], study: Study) -> dict[str, Any]:
    encoding: dict[str, Any] = {
        "x": {
            "field": "odds",
            "type": "quantitative",
            "scale": {"type": "log", "nice": False},
            "axis": {
                "title": f"share of {study.counts[1]} that took no longer",
                "values": [2, 10, 100, 1000, 10000, 100000],
                "labelExpr": "format(100 * (1 - 1 / datum.value), '.6~f') + ' %'",
                "grid": True,
                "labelOverlap": "greedy",
            },
        },
        "y": {"field": "value", "type": "quantitative", **value},
        "color": base.colour(names),
        "tooltip": [{"field": name} for name in ("system", "kind", "share", "said")],
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


def _alt(lines: list[tuple[str, Percentiles]], place: str) -> str:
    words = []
    for name, line in lines:
        known = dict(line.points)
        figures = [f"{share * 100:g} % {quantity(known[share], 's')}" for share in (0.5, 0.99, 0.999) if share in known]
        words.append(f"{name}, {line.metric.replace('_', ' ')}: {', '.join(figures)}")
    return f"Percentiles {place}. {'; '.join(words)}."


def _table(lines: list[tuple[str, Percentiles]], units: str) -> Table:
    head = ("percentile", *(f"{name}, {line.metric.replace('_', ' ')}" for name, line in lines))
    rows = []
    for share in _SHOWN:
        values = [dict(line.points).get(share) for _, line in lines]
        if any(value is not None for value in values):
            cells = ["" if value is None else quantity(value, "s") for value in values]
            rows.append((f"{share * 100:g} %", *cells))
    rows.append((units, *(count(line.count) for _, line in lines)))
    return Table(head, tuple(rows))
