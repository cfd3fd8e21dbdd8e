"""Charts of `lead`: peaks of every work with the first system as 1, and the ratio at each number of clients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ironbench.report import theme, wording
from ironbench.report.cell import CONFIDENCE, EMPTY, Missing, TableCell, count
from ironbench.report.charts import base, rows
from ironbench.report.charts.base import Chart, Key, Table, joined, places, whiskered
from ironbench.report.charts.effects import ticks
from ironbench.report.findings import metric_words
from ironbench.report.numbers import number
from ironbench.study.compare import ComparedMetric, MeanRatio
from ironbench.study.lead import Leads, outcome

_SHORT = {"response_time_mean_s": "response time"}
"""Shorter names than the catalogue's."""


def words_of(metric: str) -> str:
    return _SHORT.get(metric) or metric_words(metric)


def peaks(leads: Leads) -> Chart | None:
    """None where no work has a peak on both sides."""
    shown = [
        (work, row, row.means)
        for work in leads.works
        if work.peaks is not None
        for row in work.peaks.rows
        if row.means is not None
    ]
    if not any(work.peaks for work in leads.works):
        return None
    data: list[dict[str, Any]] = [
        {
            "name": f"{work.work}: {words_of(row.metric)}",
            "metric": words_of(row.metric),
            "text": describe(leads, row, means),
            **ends(means),
        }
        for work, row, means in shown
    ]
    named = rows.named(data)
    metrics = list(dict.fromkeys(row["metric"] for row in data))
    reach = [row[end] for row in named for end in ("low", "high")] + [1.0, leads.clock or 1.0]
    domain = [min(0.9, min(reach) * 0.92), max(1.1, max(reach) * 1.08)]
    x = {
        "type": "quantitative",
        "scale": {"type": "log", "domain": domain, "nice": False, "clamp": True},
        "axis": {
            "title": f"{leads.b} with {leads.a} as 1 (logarithmic)",
            "format": "~g",
            "values": ticks(domain),
            "grid": True,
        },
    }
    layers = [*rows.frame(len(named), "names", "text"), *_lines(leads), *_marks(len(named), x, metrics)]
    datasets = {"names": named, "points": named, "one": [{"at": 1.0}]}
    datasets |= {"clock": [{"at": leads.clock}]} if leads.clock else {}
    keys = list(base.keys(metrics))
    keys += [Key("ratio of the clock frequencies", "muted", "dash")] if leads.clock else []
    table = Table(
        ("peak", f"ratio to {leads.a}", "95 % interval"),
        tuple(
            (row["name"], ratio(means).alone, ratio(means).range if _known(means) else Missing("one trial"))
            for row, (_, _, means) in zip(named, shown, strict=True)
        ),
        numbers=True,
    )
    return Chart(
        "lead", f"Peaks of {leads.b} compared with {leads.a}", f"Ratios at the peak. {base.each_row(table)}.",
        base.specification(layers, datasets, rows.height(len(named))), table, legend=tuple(keys), wide=True,
    )  # fmt: skip


def describe(leads: Leads, row: ComparedMetric, means: MeanRatio) -> str:
    """`1.27, leads by 27 %`."""
    return f"{number(means.ratio)}, {wording.text(outcome(means, leads.margin, row.better))}"


def ends(one: MeanRatio) -> dict[str, float]:
    """The ratio and its interval, which is the ratio itself where there is none."""
    low, high = (one.low, one.high) if one.known else (one.ratio, one.ratio)
    return {"ratio": one.ratio, "low": low, "high": high}


def ratio(one: MeanRatio) -> TableCell:
    """The ratio with its interval, if there is one."""
    return TableCell(one.ratio, "times", one.low, one.high, CONFIDENCE) if one.known else TableCell(one.ratio, "times")


def _known(one: MeanRatio) -> bool:
    return one.known and one.low < one.high


def _lines(leads: Leads) -> list[dict[str, Any]]:
    """Rules at 1 and at the ratio of the clock frequencies."""
    names = [("one", "@ink", [1, 0])] + ([("clock", "@muted", [5, 4])] if leads.clock else [])
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


_GROUP = 0.6
"""Width of all works at one number of clients, of the distance to the next."""


def by_clients(leads: Leads) -> Chart | None:
    """None without a work that both sides ran with two numbers of clients, or with too many works."""
    works = [work for work in leads.works if len(work.by_clients) > 1]
    if not 0 < len(works) <= theme.SYSTEMS:
        return None
    names = [work.work for work in works]
    counts = sorted({clients for work in works for clients, _ in work.by_clients})
    by_place = {
        (work.work, clients): row.means for work in works for clients, row in work.by_clients if row.means is not None
    }
    # Works stand side by side at each number of clients, so that intervals do not hide each other.
    points = [
        {
            "system": work.work,
            "clients": clients,
            "place": counts.index(clients) + (place - (len(works) - 1) / 2) * _GROUP / len(works),
            "text": describe(leads, row, row.means),
            **ends(row.means),
        }
        for place, work in enumerate(works)
        for clients, row in work.by_clients
        if row.means is not None
    ]
    reach = [row[end] for row in points for end in ("low", "high")] + [1.0, leads.clock or 1.0]
    scale = {"type": "log", "domain": [min(0.9, min(reach) * 0.95), max(1.1, max(reach) * 1.05)], "nice": False}
    lines = [{"at": 1.0}], [{"at": leads.clock}] if leads.clock else []
    keys = list(base.keys(names))
    keys += [Key("95 % interval", "muted", "line")] if any(row["low"] < row["high"] for row in points) else []
    keys += [Key("ratio of the clock frequencies", "muted", "dash")] if leads.clock else []
    table = _table(names, counts, by_place)
    x = places("clients or threads", [str(number) for number in counts])
    return Chart(
        "lead-by-clients",
        f"{leads.b} compared with {leads.a} at each number of clients",
        f"Ratios of throughput. {base.each_line(table, 'clients or threads')}.",
        base.specification(_layers(names, x, scale), {"points": points, "one": lines[0], "clock": lines[1]}, 300),
        table,
        f"throughput with {leads.a} as 1, logarithmic",
        tuple(keys),
        wide=True,
    )


def _layers(names: list[str], x: dict[str, Any], scale: dict[str, Any]) -> list[dict[str, Any]]:
    y = {
        "field": "ratio",
        "type": "quantitative",
        "scale": scale,
        "axis": {"title": None, "format": "~g", "values": ticks(scale["domain"])},
    }
    colour = base.colour(names)
    tooltip = [{"field": "system", "title": "work"}, {"field": "clients"}, {"field": "text", "title": "lead"}]
    rules = [
        {
            "data": {"name": name},
            "mark": {"type": "rule", "color": tone, "strokeDash": dash},
            "encoding": {"y": {**y, "field": "at"}},
        }
        for name, tone, dash in (("one", "@ink", [1, 0]), ("clock", "@muted", [5, 4]))
    ]
    looks = colour, base.shape(names)
    return [*rules, joined("points", x, y, colour, 0.7), *whiskered("points", x, y, looks, tooltip)]


def _table(names: list[str], counts: list[int], by_place: dict[tuple[str, int], MeanRatio]) -> Table:
    ratios = {
        place: replace(ratio(one) if _known(one) else ratio(one).alone, bare=True) for place, one in by_place.items()
    }
    rows = tuple((count(number), *(ratios.get((name, number), EMPTY) for name in names)) for number in counts)
    return Table(("clients", *names), rows, numbers=True)
