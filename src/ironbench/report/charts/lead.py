"""Peaks of every work with the first system as 1: throughput, response time and what the frequency alone would give."""

from __future__ import annotations

from typing import Any

from ironbench.analyse.lead import Lead, Leads
from ironbench.report.charts import base, rows
from ironbench.report.charts.base import Chart, Key, Table
from ironbench.report.charts.effects import ticks
from ironbench.report.findings import metric_words
from ironbench.report.numbers import number, times

_SAID = {"response_time_mean_s": "response time"}
"""Shorter than their title."""


def words_of(metric: str) -> str:
    return _SAID.get(metric) or metric_words(metric)


def peaks(found: Leads) -> Chart | None:
    """None where no work has a peak on both sides."""
    shown = [(work, work.peaks) for work in found.works if work.peaks is not None]
    if not shown:
        return None
    data: list[dict[str, Any]] = []
    for work, both in shown:
        data += [
            {"name": f"{work.work}: {words_of(metric)}", "metric": words_of(metric), "said": said(one), **ends(one)}
            for metric, one in both.leads.items()
        ]
    named = rows.named(data)
    metrics = list(dict.fromkeys(row["metric"] for row in data))
    reach = [row[end] for row in named for end in ("low", "high")] + [1.0, found.hertz_ratio or 1.0]
    domain = [min(0.9, min(reach) * 0.92), max(1.1, max(reach) * 1.08)]
    x = {
        "type": "quantitative",
        "scale": {"type": "log", "domain": domain, "nice": False, "clamp": True},
        "axis": {
            "title": f"{found.b} with {found.a} as 1 (logarithmic)",
            "format": "~g",
            "values": ticks(domain),
            "grid": True,
        },
    }
    layers = [*rows.frame(len(named), "names", "said"), *_lines(found), *_marks(len(named), x, metrics)]
    datasets = {"names": named, "points": named, "one": [{"at": 1.0}]}
    datasets |= {"clock": [{"at": found.hertz_ratio}]} if found.hertz_ratio else {}
    keys = list(base.keys(metrics))
    keys += [Key("ratio of the clock frequencies", "muted", "dash")] if found.hertz_ratio else []
    table = Table(
        ("peak", f"ratio to {found.a}", "95 % interval"),
        tuple((row["name"], times(row["ratio"]), _interval(row)) for row in named),
        numbers=True,
    )
    return Chart(
        "lead", f"Peaks of {found.b} beside {found.a}", f"Ratios of {len(named)} figures at the peak",
        base.specification(layers, datasets, rows.height(len(named))), table, legend=tuple(keys), wide=True,
    )  # fmt: skip


def said(one: Lead) -> str:
    """`1.27, leads by 27 %`."""
    return f"{number(one.ratio)}, {one.words}"


def ends(one: Lead) -> dict[str, float]:
    """The ratio and its interval, which is the ratio itself where there is none."""
    low = one.low if one.low is not None else one.ratio
    high = one.high if one.high is not None else one.ratio
    return {"ratio": one.ratio, "low": low, "high": high}


def _interval(row: dict[str, Any]) -> str:
    return f"{number(row['low'])} to {number(row['high'])}" if row["high"] > row["low"] else "one trial"


def _lines(found: Leads) -> list[dict[str, Any]]:
    """1, and the ratio of the frequencies."""
    names = [("one", "@ink", [1, 0])] + ([("clock", "@muted", [5, 4])] if found.hertz_ratio else [])
    return [
        {
            "data": {"name": name},
            "mark": {"type": "rule", "color": colour, "strokeDash": dash},
            "encoding": {"x": {"field": "at", "type": "quantitative"}},
        }
        for name, colour, dash in names
    ]


def _marks(count: int, x: dict[str, Any], metrics: list[str]) -> list[dict[str, Any]]:
    y = rows.place(count)
    colour = {**base.colour(metrics), "field": "metric"}
    shape = {**base.shape(metrics), "field": "metric"}
    bar = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour}
    dot = {"x": {**x, "field": "ratio"}, "y": y, "color": colour, "shape": shape}
    return [
        {"data": {"name": "points"}, "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.55}, "encoding": bar},
        {
            "data": {"name": "points"},
            "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1},
            "encoding": dot,
        },
    ]
