"""Each query's time beside the baseline's: bars from 1 on a logarithmic axis, with the interval of the blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ironbench.analyse.queries import Queries, QueryRatio, Subject
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Table
from ironbench.report.charts.query_map import query_map
from ironbench.report.charts.speed_up import speed_up
from ironbench.report.numbers import number, quantity, times

_MOST = 4
"""More systems side by side make bars too thin to see; the heat map and the table have all."""
_TICKS = (
    0.01,
    0.02,
    0.05,
    0.07,
    0.1,
    0.15,
    0.2,
    0.25,
    0.33,
    0.5,
    0.7,
    0.8,
    0.9,
    1,
    1.1,
    1.25,
    1.5,
    2,
    3,
    4,
    5,
    7,
    10,
    20,
    50,
    100,
)
_MOST_TICKS = 9
_SHORT = "width < 560 && test(/^q[0-9]+$/, datum.label) ? slice(datum.label, 1) : datum.label"
"""`q07` as `07` on a phone, where 22 of the longer ones overlap."""
_REACH = 1.5
"""An interval of few blocks may be very wide: the axis goes no further than this power of the ratios themselves."""


def by_query(found: Queries | None) -> list[Chart]:
    """All charts of queries one by one, in reading order; none where the work is not made of queries."""
    return [*query_bars(found), *query_map(found), *speed_up(found)]


def query_bars(found: Queries | None) -> list[Chart]:
    """None where nothing was compared."""
    if found is None or not found.compared:
        return []
    shown = found.compared[:_MOST]
    names = [subject.name for subject in shown]
    every = [subject.name for subject in found.subjects]
    domain = _domain(shown)
    rows = [
        {
            "query": one.query,
            "system": subject.name,
            "ratio": one.ratio,
            "one": 1.0,
            "said": f"{number(one.ratio, 3)} ×",
            "interval": _interval(one),
        }
        for subject in shown
        for one in subject.ratios
    ]
    whiskers = [
        {
            "query": one.query,
            "system": subject.name,
            "low": min(max(one.low, domain[0]), domain[1]),
            "high": max(min(one.high, domain[1]), domain[0]),
        }
        for subject in shown
        for one in subject.ratios
        if one.known
    ]
    overall = [{"system": subject.name, "ratio": subject.overall} for subject in shown]
    expected = [{"system": one.name, "ratio": one.expected} for one in shown if one.expected is not None]
    return [
        Chart(
            "query-ratios",
            f"Time of each query over that of {found.subjects[0].name}",
            _alt(shown, found.subjects[0].name),
            base.specification(
                _layers(names, every, domain),
                {"queries": rows, "whiskers": whiskers, "overall": overall, "expected": expected},
                320,
            ),
            query_table(found),
            "ratio, logarithmic; below 1 is faster",
            tuple(key for key in base.keys(every, "square") if key.label in names),
            note=_note(found, bool(whiskers)) + _let_expect(found, shown) + _left_out(found),
            wide=True,
        )
    ]


def query_table(found: Queries) -> Table:
    """A row per query: the baseline's time, and each system's with its ratio."""
    repeated = any(one.known for subject in found.compared for one in subject.ratios)
    head: tuple[str, ...] = ("query", found.subjects[0].name)
    for subject in found.compared:
        head += (subject.name, "ratio", *(["interval"] if repeated else []))
    rows = []
    for query in found.names:
        row = [query, _time(found.subjects[0], query)]
        for subject in found.compared:
            one = next((one for one in subject.ratios if one.query == query), None)
            row += [_time(subject, query), times(one.ratio) if one else "–"]
            row += [_interval(one) if one else "–"] if repeated else []
        rows.append(tuple(row))
    return Table(head, tuple(rows), numbers=True)


def _layers(names: list[str], every: list[str], domain: list[float]) -> list[dict[str, Any]]:
    # Of every system, the baseline too, so that each keeps its colour.
    colour = base.colour(every)
    x: dict[str, Any] = {
        "field": "query",
        "type": "nominal",
        "sort": None,
        "axis": {"title": None, "labelAngle": 0, "labelExpr": _SHORT},
        "scale": {"paddingInner": 0.25 if len(names) > 1 else 0.35},
    }
    offset = {"xOffset": {"field": "system", "type": "nominal", "sort": names}} if len(names) > 1 else {}
    y: dict[str, Any] = {
        "field": "ratio",
        "type": "quantitative",
        "scale": {"type": "log", "domain": domain, "nice": False, "clamp": True},
        "axis": {"title": None, "values": _ticks(domain), "format": "~r", "grid": True},
    }
    tooltip = [
        {"field": "query"},
        {"field": "system"},
        {"field": "said", "title": "ratio"},
        {"field": "interval", "title": "95 % interval"},
    ]
    bar = {
        "data": {"name": "queries"},
        "mark": {"type": "bar", "opacity": 0.85},
        "encoding": {"x": x, **offset, "y": y, "y2": {"field": "one"}, "color": colour, "tooltip": tooltip},
    }
    whisker = {
        "data": {"name": "whiskers"},
        "mark": {"type": "rule", "color": "@ink", "strokeWidth": 1.2},
        "encoding": {"x": x, **offset, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
    }
    one: dict[str, Any] = {
        "mark": {"type": "rule", "color": "@ink", "strokeWidth": 1.2},
        "encoding": {"y": {**{key: value for key, value in y.items() if key != "field"}, "datum": 1}},
    }
    mean = {
        "data": {"name": "overall"},
        "mark": {"type": "rule", "strokeDash": [5, 4], "strokeWidth": 1.5},
        "encoding": {"y": y, "color": colour},
    }
    expected = {
        "data": {"name": "expected"},
        "mark": {"type": "rule", "strokeDash": [2, 3], "strokeWidth": 2},
        "encoding": {"y": y, "color": colour},
    }
    return [bar, one, mean, expected, whisker]


def _domain(shown: Sequence[Subject]) -> list[float]:
    """From the lowest to the highest of ratios and intervals, 1 inside."""
    logs = [math.log(one.ratio) for subject in shown for one in subject.ratios]
    logs += [math.log(subject.expected) for subject in shown if subject.expected]
    reach = _REACH * max(math.log(1.25), *map(abs, logs))
    ends = [
        math.log(end) for subject in shown for one in subject.ratios for end in (one.low, one.high)
        if 0 < end < math.inf
    ]  # fmt: skip
    low = min(-0.05, *logs, *(max(end, -reach) for end in ends))
    high = max(0.05, *logs, *(min(end, reach) for end in ends))
    return [math.exp(low - 0.04 * (high - low)), math.exp(high + 0.04 * (high - low))]


def _ticks(domain: list[float]) -> list[float]:
    """Round ratios, as many as can be read, 1 always among them."""
    gap = math.log(domain[1] / domain[0]) / _MOST_TICKS
    kept = [1.0]
    for side in ([t for t in _TICKS if 1 < t <= domain[1]], [t for t in reversed(_TICKS) if domain[0] <= t < 1]):
        last = 1.0
        for tick in side:
            if abs(math.log(tick / last)) >= gap:
                kept.append(tick)
                last = tick
    return sorted(kept)


def _interval(one: QueryRatio) -> str:
    return f"{number(one.low)} to {number(one.high)}" if one.known else "no interval"


def _time(subject: Subject, query: str) -> str:
    time_s = subject.times_s.get(query)
    return "–" if time_s is None else quantity(time_s, "s")


def _note(found: Queries, whiskers: bool) -> str:
    mean = "The dashed line of each colour is the geometric mean of all queries."
    if not whiskers:
        return f"Without repeats no spread is known: a bar may be chance. {mean}"
    kind = "of the blocks' ratios" if found.in_blocks else "(Welch), since the trials were not run in turns"
    return f"Whiskers are 95 % intervals {kind}. {mean}"


def _let_expect(found: Queries, shown: Sequence[Subject]) -> str:
    """What the dotted lines mean, with the figures that they are made of."""
    told = [
        f"{subject.name} {number(subject.expected, 3)} ({subject.reference_score:g} to "
        f"{found.subjects[0].reference_score:g})"
        for subject in shown
        if subject.expected is not None
    ]
    if not told:
        return ""
    return (
        " Dotted: what the processors' reference scores alone let expect, as they were declared: "
        f"{', '.join(told)}; what is left is not the processors'."
    )


def _left_out(found: Queries) -> str:
    rest = len(found.compared) - _MOST
    return f" Of {len(found.compared)} systems the first {_MOST} are drawn; the table has all." if rest > 0 else ""


def _alt(shown: Sequence[Subject], baseline: str) -> str:
    words = []
    for subject in shown:
        best, worst = (pick(subject.ratios, key=lambda one: one.ratio) for pick in (min, max))
        words.append(
            f"{subject.name}: from {number(best.ratio, 3)} times for {best.query} to {number(worst.ratio, 3)} for "
            f"{worst.query}, {number(subject.overall or 1.0, 3)} over all"
        )
    return f"Time of each query over that of {baseline}. {'; '.join(words)}."
