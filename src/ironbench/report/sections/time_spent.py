"""Where the time of a transaction goes: a stacked bar per cell, and what changes from one cell to another."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ironbench.analyse.shares import Step, Waterfall
from ironbench.model.observer import PARTS
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Key, Table
from ironbench.report.charts.rows import Bar, keys, stacked
from ironbench.report.numbers import between, quantity, scale
from ironbench.report.section import Section, with_rows

if TYPE_CHECKING:
    from ironbench.analyse.study import Study

PLACE = 1600
_LEAD = (
    "A client's time per transaction, divided among what its backend did or waited for. A share of 50 % means: "
    "with that part free, at most twice as much. What it does bring, only a cell with that part made free (`ideal`) "
    "can show."
)


def sections(study: Study) -> Iterator[Section]:
    charts = (*spent(study), *waterfalls(study))
    yield Section(
        "time", "Where the time goes", _LEAD, charts, (*with_rows(limits(study)), *with_rows(ceilings(study)))
    )


def limits(study: Study) -> Table:
    rows = tuple((cell.name, cell.time.limit.sentence) for cell in study.cells if cell.time)
    return Table(("cell", "what limits"), rows, words=True)


def ceilings(study: Study) -> Table:
    """The measured gain if a part were free."""
    rows = tuple((" and ".join(one.parts), one.sentence) for one in study.ceilings)
    return Table(("made free", "what that brings"), rows, words=True)


COLOURS = dict(zip(PARTS, ("@p0", "@p7", "@p2", "@p8", "@p1", "@p3", "@p5", "@s6", "@p4", "@p6"), strict=True))
"""Part → colour, the same in every chart of a lab."""
_ROW = 30
_LEAST = 0.01
"""Smallest share of the whole that is drawn by itself."""
_REST = "all else"
_LESS, _MORE, _WHOLE = "takes less time", "takes more time", "before and after"
_KINDS = {_WHOLE: "@p4", _LESS: "@s2", _MORE: "@s1"}


def spent(study: Study) -> list[Chart]:
    """Seconds per transaction by part; none where backends were not observed."""
    known = [(cell.name, cell.time) for cell in study.cells if cell.time]
    if not known:
        return []
    suffix, factor = scale("s", [time.total_s for _, time in known])
    shown = {part.name for _, time in known for part in time.parts if part.share >= 0.0005}
    colours = {name: colour for name, colour in COLOURS.items() if name in shown}
    bars = [
        Bar(
            name,
            {part.name: part.time_s / factor for part in time.parts},
            {part.name: f"{quantity(part.time_s, 's')}, {quantity(part.share, 'share')}" for part in time.parts},
            quantity(time.total_s, "s"),
        )
        for name, time in known
    ]
    x = {"scale": {"zero": True, "nice": False}, "axis": {"title": suffix, "tickCount": 5, "format": ",~r"}}
    words = "; ".join(
        f"{bar.name}: {bar.total}, of which {', '.join(f'{part} {text}' for part, text in bar.words.items())}"
        for bar in bars
    )
    return [
        Chart(
            "time",
            "Time of a transaction",
            f"Where a client's time per transaction goes. {words}.",
            stacked(bars, colours, x),
            _table(study),
            f"{suffix} of a client's time",
            keys(colours),
            wide=True,
        )
    ]


def _table(study: Study) -> Table:
    rows = []
    for cell in study.cells:
        for part in cell.time.parts if cell.time else ():
            doubt = between(part.low, part.high, "share") if part.low < part.high else "counted"
            rows.append((f"{cell.name}: {part.name}", quantity(part.time_s, "s"), quantity(part.share, "share"), doubt))
    return Table(("cell and part", "per transaction", "share", "interval"), tuple(rows))


def waterfalls(study: Study) -> list[Chart]:
    """Changes from each baseline to the cell compared with it."""
    return [waterfall_chart(waterfall, f"waterfall-{place}") for place, waterfall in enumerate(study.waterfalls)]


def waterfall_chart(waterfall: Waterfall, id: str) -> Chart:
    suffix, factor = scale("s", [waterfall.before_s, waterfall.after_s])
    data = [_whole("before", waterfall.before_s, factor)]
    level = waterfall.before_s
    for step in _worth_a_row(waterfall):
        data.append(_step(step, level, factor))
        level += step.delta_s
    data.append(_whole("after", waterfall.after_s, factor))
    rows = tuple((row["part"], row["text"], row["interval"]) for row in data)
    return Chart(
        id,
        f"From {waterfall.before} to {waterfall.after}",
        f"Change of a client's time per transaction from {waterfall.before} to {waterfall.after}. {waterfall.sentence}",
        base.specification(_layers(data, suffix), {"steps": data}, len(data) * _ROW + 40),
        Table(("part", "time", "interval"), rows),
        f"{suffix} per transaction",
        (
            *(Key(kind, colour.removeprefix("@"), "square") for kind, colour in _KINDS.items()),
            *([] if all(row["clear"] for row in data) else [Key("pale: the interval holds 0", "rule", "square")]),
        ),
        waterfall.method,
    )


def _worth_a_row(waterfall: Waterfall) -> list[Step]:
    """Joins steps too small to be seen into one without an interval; keeps the sum."""
    least = _LEAST * max(waterfall.before_s, waterfall.after_s)
    small = [step for step in waterfall.steps if abs(step.delta_s) < least]
    if len(small) < 2:
        return list(waterfall.steps)
    rest = sum(step.delta_s for step in small)
    return [*(step for step in waterfall.steps if step not in small), Step(_REST, rest, -math.inf, math.inf)]


def _whole(name: str, seconds: float, factor: float) -> dict[str, Any]:
    text = quantity(seconds, "s")
    ends = {"from": 0.0, "to": seconds / factor, "end": seconds / factor}
    return {"part": name, "kind": _WHOLE, "clear": True, "text": text, "interval": "", **ends}


def _step(step: Step, level: float, factor: float) -> dict[str, Any]:
    ends = sorted((level / factor, (level + step.delta_s) / factor))
    return {
        "part": step.part,
        "kind": _MORE if step.delta_s > 0 else _LESS,
        "clear": step.clear,
        "text": signed(step.delta_s),
        "interval": between(step.low_s, step.high_s, "s") if math.isfinite(step.low_s) else "",
        "from": ends[0],
        "to": ends[1],
        "end": ends[1],
    }


def signed(seconds: float) -> str:
    sign = "+" if seconds > 0 else "−" if seconds < 0 else ""
    return sign + quantity(abs(seconds), "s")


def _layers(data: list[dict[str, Any]], suffix: str) -> list[dict[str, Any]]:
    y = {
        "field": "part",
        "type": "ordinal",
        "sort": None,
        "scale": {"domain": [row["part"] for row in data], "paddingInner": 0.35, "paddingOuter": 0.2},
        "axis": {"title": None, "ticks": False, "domain": False, "labelColor": "@ink"},
    }
    most = max(row["to"] for row in data)
    x = {
        "type": "quantitative",
        "scale": {"domain": [min(0.0, *(row["from"] for row in data)), most * 1.16], "nice": False},
        "axis": {"title": suffix, "tickCount": 5, "format": ",~r", "grid": True},
    }
    colour = {"field": "kind", "type": "nominal", "scale": {"domain": list(_KINDS), "range": list(_KINDS.values())}}
    tooltip = [{"field": "part"}, {"field": "text", "title": "change"}, {"field": "interval"}]
    bar = {
        "data": {"name": "steps"},
        "mark": {"type": "bar", "cornerRadius": 1},
        "encoding": {
            "y": y,
            "x": {**x, "field": "from"},
            "x2": {"field": "to"},
            "color": colour,
            "opacity": {"condition": {"test": "datum.clear", "value": 0.95}, "value": 0.4},
            "tooltip": tooltip,
        },
    }
    text = {
        "data": {"name": "steps"},
        "mark": {"type": "text", "align": "left", "dx": 5, "color": "@ink", "fontSize": 12},
        "encoding": {"y": y, "x": {**x, "field": "end"}, "text": {"field": "text"}},
    }
    return [bar, text]
