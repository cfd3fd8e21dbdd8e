"""One system's lead over another at each number of clients or threads: a line for each work, with intervals."""

from __future__ import annotations

from typing import Any

from ironbench.analyse.lead import Lead, Leads
from ironbench.report import theme
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Key, Table
from ironbench.report.charts.effects import ticks
from ironbench.report.charts.lead import ends, said
from ironbench.report.charts.means import joined, places, whiskered
from ironbench.report.numbers import number

_GROUP = 0.6
"""Width of all works at one number of clients, of the distance to the next."""


def by_clients(found: Leads) -> Chart | None:
    """None where no work was measured with two numbers of clients on both sides, or too many to tell apart."""
    works = [work for work in found.works if len(work.by_clients) > 1]
    if not 0 < len(works) <= theme.SYSTEMS:
        return None
    names = [work.work for work in works]
    counts = sorted({clients for work in works for clients, _ in work.by_clients})
    points = [
        _point(work.work, place, len(works), counts.index(clients), clients, one)
        for place, work in enumerate(works)
        for clients, one in work.by_clients
    ]
    reach = [row[end] for row in points for end in ("low", "high")] + [1.0, found.hertz_ratio or 1.0]
    scale = {"type": "log", "domain": [min(0.9, min(reach) * 0.95), max(1.1, max(reach) * 1.05)], "nice": False}
    lines = [{"at": 1.0}], [{"at": found.hertz_ratio}] if found.hertz_ratio else []
    keys = list(base.keys(names))
    keys += [Key("95 % interval", "muted", "line")] if any(row["low"] < row["high"] for row in points) else []
    keys += [Key("ratio of the clock frequencies", "muted", "dash")] if found.hertz_ratio else []
    x = places("clients or threads", [str(count) for count in counts])
    return Chart(
        "lead-by-clients",
        f"{found.b} beside {found.a} at each number of clients",
        f"Ratios of throughput at {', '.join(map(str, counts))} clients or threads",
        base.specification(_layers(names, x, scale), {"points": points, "one": lines[0], "clock": lines[1]}, 300),
        _table(names, counts, points),
        f"throughput with {found.a} as 1, logarithmic",
        tuple(keys),
        wide=True,
    )


def _point(work: str, place: int, works: int, at: int, clients: int, one: Lead) -> dict[str, Any]:
    """Works stand beside each other at each number of clients, so that intervals do not hide each other."""
    return {
        "system": work,
        "clients": clients,
        "place": at + (place - (works - 1) / 2) * _GROUP / works,
        "said": said(one),
        **ends(one),
    }


def _layers(names: list[str], x: dict[str, Any], scale: dict[str, Any]) -> list[dict[str, Any]]:
    y = {
        "field": "ratio",
        "type": "quantitative",
        "scale": scale,
        "axis": {"title": None, "format": "~g", "values": ticks(scale["domain"])},
    }
    colour = base.colour(names)
    tooltip = [{"field": "system", "title": "work"}, {"field": "clients"}, {"field": "said", "title": "lead"}]
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


def _table(names: list[str], counts: list[int], points: list[dict[str, Any]]) -> Table:
    found = {(row["system"], row["clients"]): number(row["ratio"]) for row in points}
    rows = tuple((str(count), *(found.get((name, count), "") for name in names)) for count in counts)
    return Table(("clients", *names), rows, numbers=True)
