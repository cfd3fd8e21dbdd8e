"""Stacked bars of shares against clients, one chart per system: CPU budget and waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ironbench.analyse.shares import Shares
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Key, Table
from ironbench.report.numbers import quantity
from ironbench.words import counted

# Budget parts in the order stacked, with their colours: idle is paper-grey, steal is red because others took it.
BUDGET = {
    "server": "@p0",
    "client": "@p1",
    "observers": "@p2",
    "emulation": "@p3",
    "kernel": "@p7",
    "other": "@p4",
    "steal": "@p5",
    "idle": "@p6",
}


def by_clients(id: str, name: str, subject: str, bars: Sequence[Shares], colours: dict[str, str], what: str) -> Chart:
    parts = [part for part in colours if any(bar.parts.get(part, 0.0) >= 0.0005 for bar in bars)]
    rows = [
        {"clients": bar.clients, "part": part, "order": place, "share": bar.parts.get(part, 0.0)}
        | {"said": quantity(bar.parts.get(part, 0.0), "share")}
        for bar in bars
        for place, part in enumerate(parts)
    ]
    layer = {"data": {"name": "shares"}, "mark": {"type": "bar", "stroke": "@paper", "strokeWidth": 0.6}}
    layer["encoding"] = _encoding(parts, colours, max(1.0, *(sum(bar.parts.values()) for bar in bars)))
    busiest = max(bars, key=lambda bar: bar.clients)
    words = ", ".join(f"{part} {quantity(busiest.parts.get(part, 0.0), 'share')}" for part in parts)
    return Chart(
        id,
        name,
        f"{subject} of {name}, share {what}. With {counted(busiest.clients, 'client')}: {words}.",
        base.specification([layer], {"shares": rows}, 230),
        Table(
            ("clients", *parts),
            tuple((str(bar.clients), *(quantity(bar.parts.get(p, 0.0), "share") for p in parts)) for bar in bars),
        ),
        f"% {what}",
        tuple(Key(part, colours[part].removeprefix("@"), "square") for part in parts),
    )


def _encoding(parts: list[str], colours: dict[str, str], most: float) -> dict[str, Any]:
    return {
        "x": {
            "field": "clients",
            "type": "ordinal",
            "axis": {"title": "clients", "labelAngle": 0, "domain": False, "ticks": False},
        },
        "y": {
            "field": "share",
            "type": "quantitative",
            "stack": "zero",
            "scale": {"nice": False, "domain": [0, most]},
            "axis": {"title": None, "format": ".0%", "tickCount": 5},
        },
        "color": {
            "field": "part",
            "type": "nominal",
            "scale": {"domain": parts, "range": [colours[part] for part in parts]},
        },
        "order": {"field": "order"},
        "tooltip": [{"field": "clients"}, {"field": "part"}, {"field": "said", "title": "share"}],
    }
