"""Charts of query times. Bars show times relative to the baseline, and a heat map shows the times in every system."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
from typing import Any

from ironbench.model.finding import LEAST_BLOCKS_SHOWN
from ironbench.report.cell import ABSENT, CONFIDENCE, Content, Missing, TableCell, cell_text
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Table
from ironbench.report.charts.speed_up import speed_up
from ironbench.report.finding_tables import NO_INTERVAL
from ironbench.report.numbers import number, times
from ironbench.report.wording.values import CI
from ironbench.study.queries import Queries, QueryRatio, QuerySubject

_MOST = 4
"""Maximum number of systems in the bar chart, because bars of more systems would be too thin to see. The heat map and
the table show all systems."""
_TICKS = (
    0.01, 0.02, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.33, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 4, 5, 7, 10, 20,
    50, 100,
)  # fmt: skip
_MOST_TICKS = 9
_ROOM_PX = 26
"""Width in pixels of a label such as `q07`, including the gap to the next label."""


def _labels(count: int) -> str:
    """Returns the Vega expression for the labels of `count` queries. If the chart is too narrow for labels on one line,
    for example on a phone, every second label is drawn one line lower."""
    second = f"round(datum.index * {max(1, count - 1)}) % 2"
    return f"width < {_ROOM_PX * count} && {second} ? ['', datum.label] : datum.label"


_REACH = 1.5
"""Limits the length of the axis, because confidence intervals from few blocks may be very wide. The axis ends at the
most extreme ratio raised to this power."""


def by_query(queries: Queries | None) -> list[Chart]:
    """Returns all charts of query times in reading order. Returns an empty list if the workload has no queries."""
    return [*query_bars(queries), *query_map(queries), *speed_up(queries)]


def query_bars(queries: Queries | None) -> list[Chart]:
    """Draws the time of each query relative to the baseline as bars. Returns an empty list if nothing was compared."""
    if queries is None or not queries.compared:
        return []
    subjects = queries.compared[:_MOST]
    names = [subject.name for subject in subjects]
    every = [subject.name for subject in queries.subjects]
    domain = _domain(subjects)
    rows = [
        {
            "query": one.query,
            "system": subject.name,
            "ratio": one.ratio,
            "one": 1.0,
            "text": cell_text(_ratio(one).alone),
            "interval": cell_text(_interval(one)),
        }
        for subject in subjects
        for one in subject.ratios
    ]
    whiskers = [
        {
            "query": one.query,
            "system": subject.name,
            "low": min(max(one.low, domain[0]), domain[1]),
            "high": max(min(one.high, domain[1]), domain[0]),
        }
        for subject in subjects
        for one in subject.ratios
        if one.known
    ]
    overall = [{"system": subject.name, "ratio": subject.overall} for subject in subjects]
    expected = [{"system": one.name, "ratio": one.expected} for one in subjects if one.expected is not None]
    return [
        Chart(
            "query-ratios",
            f"Query times relative to {queries.subjects[0].name}",
            _alt(subjects, queries.subjects[0].name),
            base.specification(
                _layers(names, every, domain, _labels(len({row["query"] for row in rows}))),
                {"queries": rows, "whiskers": whiskers, "overall": overall, "expected": expected},
                320,
            ),
            query_table(queries),
            "ratio of query times, logarithmic scale; below 1 means faster",
            tuple(key for key in base.keys(every, "square") if key.label in names),
            note=_note(queries, bool(whiskers)) + _expected_note(queries, subjects) + _omitted_note(queries),
            wide=True,
        )
    ]


def query_table(queries: Queries) -> Table:
    """Returns a row for each query, with the baseline's time, and with the time and the ratio of every other system."""
    repeated = any(one.known for subject in queries.compared for one in subject.ratios)
    head: tuple[str, ...] = ("query", queries.subjects[0].name)
    for subject in queries.compared:
        head += (subject.name, "ratio", *([CI] if repeated else []))
    rows = []
    for query in queries.names:
        row: list[Content] = [query, _time(queries.subjects[0], query)]
        for subject in queries.compared:
            one = next((one for one in subject.ratios if one.query == query), None)
            row += [_time(subject, query), _ratio(one).alone if one else ABSENT]
            row += [_interval(one) if one else ABSENT] if repeated else []
        rows.append(tuple(row))
    return Table(head, tuple(rows))


def _layers(names: list[str], every: list[str], domain: list[float], labels: str) -> list[dict[str, Any]]:
    # The colour scale includes the baseline, which has no bars, so that every system has the same colour as in other
    # charts.
    colour = base.colour(every)
    x: dict[str, Any] = {
        "field": "query",
        "type": "nominal",
        "sort": None,
        "axis": {"title": None, "labelAngle": 0, "labelOverlap": False, "labelFontSize": 9.5, "labelExpr": labels},
        "scale": {"paddingInner": 0.25 if len(names) > 1 else 0.35},
    }
    offset = {"xOffset": {"field": "system", "type": "nominal", "sort": names}} if len(names) > 1 else {}
    y: dict[str, Any] = {
        "field": "ratio",
        "type": "quantitative",
        "scale": {"type": "log", "domain": domain, "nice": False, "clamp": True},
        "axis": {"title": None, "values": base.ratio_ticks(domain, _TICKS, _MOST_TICKS), "format": "~r", "grid": True},
    }
    tooltip = [
        {"field": "query"},
        {"field": "system"},
        {"field": "text", "title": "ratio"},
        {"field": "interval", "title": CI},
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


def _domain(shown: Sequence[QuerySubject]) -> list[float]:
    """Returns the range of the axis. The range contains 1, the ratios, and the confidence intervals up to the limit
    that `_REACH` sets."""
    logs = [math.log(one.ratio) for subject in shown for one in subject.ratios]
    logs += [math.log(subject.expected) for subject in shown if subject.expected]
    reach = _REACH * max(math.log(1.25), *map(abs, logs))
    ends = [
        math.log(end) for subject in shown for one in subject.ratios for end in (one.low, one.high)
        if 0 < end < math.inf
    ]  # fmt: skip
    low = min(-0.05, *logs, *(max(end, -reach) for end in ends))
    high = max(0.05, *logs, *(min(end, reach) for end in ends))
    return base.ratio_domain(low, high)


def _ratio(one: QueryRatio) -> TableCell:
    return TableCell(one.ratio, "times", one.low, one.high, CONFIDENCE)


def _interval(one: QueryRatio) -> TableCell | Missing:
    return _ratio(one).range if one.known else Missing(NO_INTERVAL)


def _time(subject: QuerySubject, query: str) -> TableCell | Missing:
    time_s = subject.times_s.get(query)
    return ABSENT if time_s is None else TableCell(time_s, "s")


def _note(queries: Queries, whiskers: bool) -> str:
    mean = "Dashed lines show the geometric mean of all queries."
    if not whiskers:
        few = f"With fewer than {LEAST_BLOCKS_SHOWN} blocks" if queries.in_blocks else "Without repeats"
        return f"{few}, the variation is unknown, and a bar may show a chance difference. {mean}"
    kind = "of the block ratios" if queries.in_blocks else "(Welch), because the trials were not interleaved"
    return f"Whiskers show {CI}s {kind}. {mean}"


def _expected_note(queries: Queries, shown: Sequence[QuerySubject]) -> str:
    """Explains the dotted lines, which show predictions, and names the benchmark scores behind the predictions."""
    scores = [
        f"{subject.name} {number(subject.expected, 3)} ({subject.reference_score:g} to "
        f"{queries.subjects[0].reference_score:g})"
        for subject in shown
        if subject.expected is not None
    ]
    if not scores:
        return ""
    return (
        " Dotted lines show predictions from the declared benchmark scores of the processors: "
        f"{', '.join(scores)}. The rest of the difference has other causes."
    )


def _omitted_note(queries: Queries) -> str:
    rest = len(queries.compared) - _MOST
    return (
        f" The chart shows only the first {_MOST} of {len(queries.compared)} systems; the table lists all systems."
        if rest > 0
        else ""
    )


def _alt(shown: Sequence[QuerySubject], baseline: str) -> str:
    words = []
    for subject in shown:
        best, worst = (pick(subject.ratios, key=lambda one: one.ratio) for pick in (min, max))
        words.append(
            f"{subject.name}: from {times(best.ratio)} for {best.query} to {times(worst.ratio)} for {worst.query}, "
            f"{times(subject.overall or 1.0)} overall"
        )
    return f"Query times relative to {baseline}. {'; '.join(words)}."


_ROW = 24
_LABEL = 14
"""Line height in pixels of a system's name."""
_LEAST_SYSTEMS = 2
_HALF = 4
"""Maximum number of systems for a chart of half the page's width. A chart of more systems is as wide as the page."""
_LINE = 44
"""Number of characters that fit into one line on a phone. The systems' names share this line, and longer names are
wrapped."""
_DARKEST = 10.0
"""A field has the darkest colour if the query took at least this multiple of the fastest time."""


def query_map(queries: Queries | None) -> list[Chart]:
    """Draws a heat map of query times. Returns an empty list if there is only one system."""
    if queries is None or len(queries.subjects) < _LEAST_SYSTEMS:
        return []
    fastest = {query: min(s.times_s[query] for s in queries.subjects if query in s.times_s) for query in queries.names}
    names = [subject.name for subject in queries.subjects]
    table = Table(
        ("query", *names),
        tuple((query, *(_time(subject, query) for subject in queries.subjects)) for query in queries.names),
    )
    rows = [
        {**row, "ratio": min(_DARKEST, row["value"] / fastest[row["query"]])}
        | {"times": f"{times(row['value'] / fastest[row['query']])} the fastest time"}
        for row in base.data(table, "query", "system")
    ]
    return [
        Chart(
            "query-map",
            "Query times by system",
            f"{len(names)} systems by {len(queries.names)} queries. A field is darker if the query took longer "
            "than on the fastest system. The table below lists all times.",
            base.specification(_map_layers(names), {"map": rows}, _ROW * len(queries.names) + 30),
            table,
            "darker means slower than the fastest system",
            wide=len(names) > _HALF,
        )
    ]


def _map_layers(names: list[str]) -> list[dict[str, Any]]:
    room = max(6, _LINE // len(names))
    lines = {name: textwrap.wrap(name, room) or [""] for name in names}
    folded = json.dumps(lines, ensure_ascii=False)
    # Vega draws the first line of a wrapped label where it would draw a label of one line. The other lines need
    # additional room below it.
    above = _LABEL * (max(map(len, lines.values())) - 1)
    plain: dict[str, Any] = {"title": None, "domain": False, "ticks": False}
    x: dict[str, Any] = {
        "field": "system",
        "type": "nominal",
        "sort": names,
        "axis": {
            **plain,
            "labelAngle": 0,
            "orient": "top",
            "labelExpr": f"{folded}[datum.value]",
            "labelLineHeight": _LABEL,
            "labelPadding": 4 + above,
            "labelLimit": 0,
        },
    }
    y: dict[str, Any] = {"field": "query", "type": "nominal", "sort": None, "axis": plain}
    colour = {
        "field": "ratio",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [1, _DARKEST], "range": ["@grid", "@p1"], "interpolate": "rgb"},
    }
    tooltip = [
        {"field": "query"},
        {"field": "system"},
        {"field": "text", "title": "time"},
        {"field": "times", "title": "relative to the fastest system"},
    ]
    field = {
        "data": {"name": "map"},
        "mark": {"type": "rect", "stroke": "@paper", "strokeWidth": 2},
        "encoding": {"x": x, "y": y, "color": colour, "tooltip": tooltip},
    }
    text = {
        "data": {"name": "map"},
        "mark": {"type": "text", "fontSize": 10.5, "color": "@ink", "tooltip": None},
        "encoding": {"x": x, "y": y, "text": {"field": "text"}},
    }
    return [field, text]
