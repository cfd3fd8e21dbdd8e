"""CPU time by program, and wait events of backends, as stacked bars: one bar for each number of clients or each
configuration of a lab."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ironbench.report.cell import TableCell, count
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Key, Table
from ironbench.report.charts.rows import RowBar, keys, stacked
from ironbench.report.page import Section
from ironbench.report.wording.terms import label
from ironbench.study.shares import OTHER, Shares
from ironbench.study.study import Study, SubjectResults
from ironbench.study.subjects import streams
from ironbench.words import counted

PLACE = 1700


def sections(study: Study) -> Iterator[Section]:
    yield Section("cpu", "CPU time by program", charts=(*of_parts(study), *of_cells(study)))
    yield Section("waits", "Backend wait events", charts=tuple(waits(study)))


_SCALE = {"scale": {"domain": [0, 1], "nice": False}, "axis": {"title": None, "format": ".0%", "tickCount": 5}}


def of_parts(study: Study) -> list[Chart]:
    return [
        by_clients(
            f"budget-{place}",
            part.name,
            "CPU time",
            [replace(bar, parts=_worded_budget(bar.parts)) for bar in part.budgets],
            BUDGET,
            "of the CPU time of all cores",
            at_work(part),
        )
        for place, part in enumerate(study.parts)
        if part.budgets
    ]


def of_cells(study: Study) -> list[Chart]:
    """Draws which programs used the CPU time in each configuration. Returns an empty list if this was not measured."""
    budgets = {label(cell.configuration): _worded_budget(cell.budget) for cell in study.cells if cell.budget}
    colours = {
        part: colour
        for part, colour in BUDGET.items()
        if any(budget.get(part, 0.0) >= 0.0005 for budget in budgets.values())
    }
    if not colours:
        return []
    bars = [
        RowBar(name, {part: TableCell(budget.get(part, 0.0), "share") for part in colours})
        for name, budget in budgets.items()
    ]
    table = Table(("configuration", *colours), tuple((bar.name, *bar.parts.values()) for bar in bars))
    return [
        Chart(
            "budget",
            "By configuration",
            f"CPU time by program, as a percentage of the CPU time of all cores. {base.each_row(table)}.",
            stacked(bars, colours, _SCALE),
            table,
            "% of the CPU time of all cores",
            keys(colours),
            wide=True,
        )
    ]


_EVENTS = ("@p1", "@p3", "@p2", "@p8", "@p5", "@p7", "@s6")
_WORKING = "CPU"


def waits(study: Study) -> list[Chart]:
    events = list(dict.fromkeys(event for part in study.parts for bar in part.waits for event in bar.parts))
    others = [event for event in events if event not in (_WORKING, OTHER)]
    colours = {_WORKING: "@p0"} if _WORKING in events else {}
    colours |= {event: _EVENTS[place % len(_EVENTS)] for place, event in enumerate(others)}
    colours |= {OTHER: "@p4"} if OTHER in events else {}
    return [
        by_clients(f"waits-{place}", part.name, "Backends", part.waits, colours, "of the backends", at_work(part))
        for place, part in enumerate(study.parts)
        if part.waits
    ]


# Colours of the programs that use CPU time, in stacking order. Idle time is nearly invisible. Steal time, which other
# virtual machines used, is red.
BUDGET = {
    "server": "@p0",
    "client": "@p1",
    "observers": "@p2",
    "emulation": "@p3",
    "latency relay": "@p8",
    "kernel": "@p7",
    "other programs": "@p4",
    "steal time": "@p5",
    "idle": "@p6",
}
_NAMES = {"relay": "latency relay", "other": "other programs", "steal": "steal time"}
"""Maps names in records to names in reports, where the two differ."""


def _worded_budget(budget: Mapping[str, float]) -> dict[str, float]:
    return {_NAMES.get(part, part): share for part, share in budget.items()}


def at_work(part: SubjectResults) -> str:
    """Describes the streams of a workload whose work is done by streams and not by clients. Returns an empty text for
    other workloads."""
    known = streams(part.subject.records[0])
    return known[1] if known else ""


def by_clients(
    id: str,
    name: str,
    subject: str,
    bars: Sequence[Shares],
    colours: dict[str, str],
    what: str,
    streams_words: str = "",
) -> Chart:
    """Draws a stacked bar for each number of clients. `streams_words`: description of the streams, which replaces the
    number of clients if streams did the work."""
    axis = "streams" if streams_words else "clients"
    parts = [part for part in colours if any(bar.parts.get(part, 0.0) >= 0.0005 for bar in bars)]
    table = Table(
        (axis, *parts),
        tuple(
            (streams_words or count(bar.clients), *(TableCell(bar.parts.get(part, 0.0), "share") for part in parts))
            for bar in bars
        ),
    )
    rows = [{**row, "order": parts.index(row["part"])} for row in base.data(table, "clients", "part")]
    layer = {"data": {"name": "shares"}, "mark": {"type": "bar", "stroke": "@paper", "strokeWidth": 0.6}}
    layer["encoding"] = _encoding(parts, colours, max(1.0, *(sum(bar.parts.values()) for bar in bars)), axis)
    most = max(range(len(bars)), key=lambda at: bars[at].clients)
    busiest = Table(table.head, ((streams_words or counted(bars[most].clients, "client"), *table.rows[most][1:]),))
    return Chart(
        id,
        name,
        f"{subject} of {name}, as a percentage {what}. With {base.each_row(busiest)}.",
        base.specification([layer], {"shares": rows}, 230),
        table,
        f"% {what}",
        tuple(Key(part, colours[part].removeprefix("@"), "square") for part in parts),
    )


def _encoding(parts: list[str], colours: dict[str, str], most: float, axis: str = "clients") -> dict[str, Any]:
    return {
        "x": {
            "field": "clients",
            "type": "ordinal",
            "axis": {"title": axis, "labelAngle": 0, "domain": False, "ticks": False},
        },
        "y": {
            "field": "value",
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
        "tooltip": [{"field": "clients"}, {"field": "part"}, {"field": "text", "title": "share"}],
    }
