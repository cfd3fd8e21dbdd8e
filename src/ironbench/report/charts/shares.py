"""Stacked bars of shares against clients, one chart per system: CPU budget and waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ironbench.analyse.shares import OTHER, Shares
from ironbench.analyse.study import Study
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
_EVENTS = ("@p1", "@p3", "@p2", "@p8", "@p5", "@p7", "@s6")
_WORKING = "CPU"


def budget(study: Study) -> list[Chart]:
    return [
        _chart(f"budget-{place}", part.name, "CPU time", part.budgets, BUDGET, "of the CPU time of all cores")
        for place, part in enumerate(study.parts)
        if part.budgets
    ]


def waits(study: Study) -> list[Chart]:
    events = list(dict.fromkeys(event for part in study.parts for bar in part.waits for event in bar.parts))
    others = [event for event in events if event not in (_WORKING, OTHER)]
    colours = {_WORKING: "@p0"} if _WORKING in events else {}
    colours |= {event: _EVENTS[place % len(_EVENTS)] for place, event in enumerate(others)}
    colours |= {OTHER: "@p4"} if OTHER in events else {}
    return [
        _chart(f"waits-{place}", part.name, "Backends", part.waits, colours, "of the backends")
        for place, part in enumerate(study.parts)
        if part.waits
    ]


def _chart(id: str, name: str, subject: str, bars: Sequence[Shares], colours: dict[str, str], what: str) -> Chart:
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
