"""The page of `ironbench headroom`: how far the load of each system can grow before response times exceed a limit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from ironbench.report.cell import ABSENT, CONFIDENCE, Content, Missing, Row, TableCell, count, with_range
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Key, Table, joined, whiskered
from ironbench.report.numbers import quantity, scale
from ironbench.report.page import Answer, AnswerPoint, Page, Section
from ironbench.report.wording.answers import headroom_answer as words
from ironbench.report.wording.answers.ratios import metric_words
from ironbench.report.wording.values import CI
from ironbench.study.headroom import LEAST_BLOCKS, Headroom, RateInterval, SystemHeadroom
from ironbench.words import upper_first

_LOG_TIMES = 20
"""The axis is logarithmic if the largest response time is more than this number of times the smallest."""


def page(found: Headroom) -> Page:
    """Returns the page, which contains the answer for each system, a table of the highest rates, and a chart of the
    response time at each rate."""
    first, *rest = answers(found)
    return Page(
        title="Headroom",
        lead="",
        answer=Answer(AnswerPoint(first), tuple(map(AnswerPoint, rest))),
        sections=(
            Section("headroom", "Highest rate within the limit", tables=(("", _highest(found)),)),
            Section("rates", "Response time at each rate", charts=(_chart(found),)),
        ),
        caveats=tuple(_caveats(found)),
        notes=(words.how_measured(),),
        derived=" ".join(found.derived),
        fields=partial(_fields, found),
    )


def answers(found: Headroom) -> list[str]:
    """States how far the load of each system can grow. Then compares the systems with the first one."""
    limit = _limit(found)
    lines = []
    for system in found.systems:
        if system.highest is None or system.above or system.below:
            lines += _open_ends(system, limit)
        elif found.today is not None:
            lines.append(words.growth(system.name, system.highest, found.today, found.units, *_bound_of(found)))
        else:
            lines.append(words.highest(system.name, system.highest, found.units, limit))
    baseline = found.systems[0].name
    for system, ratio in zip(found.systems[1:], found.ratios, strict=True):
        if ratio is not None:
            lines.append(words.compared(system.name, baseline, ratio, found.paired))
    if found.today is not None:
        at = [
            (one.name, point.summary.centre)
            for one in found.systems
            if (point := one.at(found.today)) and point.summary
        ]
        if at:
            lines.append(words.at_today(found.today, at, found.limit.metric))
    return [upper_first(line) for line in lines]


def reasons(found: Headroom) -> list[str]:
    """Returns the reasons why the answer is not certain or not complete. Returns an empty list if there are none."""
    lines = []
    for system in found.systems:
        if found.today is not None and system.complete and system.highest:
            ratio = system.highest.over(found.today)
            if not ratio.clear or ratio.value < 1:
                lines.append(words.growth(system.name, system.highest, found.today, found.units, *_bound_of(found)))
        if system.flagged:
            lines.append(words.flagged(system.name, system.flagged))
        lines += _open_ends(system, _limit(found))
        if system.highest is not None and not system.highest.known:
            lines.append(words.too_few_blocks(system.name, system.highest.blocks))
    return lines


def _bound_of(found: Headroom) -> tuple[str, float]:
    return found.limit.metric, found.limit.high or 0.0


def _limit(found: Headroom) -> str:
    return words.limit_in_words(found.limit.metric, found.limit.high or 0.0)


def _open_ends(system: SystemHeadroom, limit: str) -> list[str]:
    lines = []
    if system.above:
        lines.append(words.beyond(system.name, system.above, system.above_rate, limit))
    if system.below:
        lines.append(words.exceeded(system.name, system.below, system.below_rate, limit, system.short))
    if system.short and not system.complete and not system.below:
        lines.append(words.short(system.name, system.short))
    if system.highest is None and not lines:
        lines.append(words.too_few_blocks(system.name, 0))
    return lines


def _caveats(found: Headroom) -> Iterator[str]:
    if found.left_out:
        yield words.left_out(found.left_out)
    for system in found.systems:
        if system.flagged:
            yield words.flagged(system.name, system.flagged)
        if system.highest is not None and not system.highest.known:
            yield words.too_few_blocks(system.name, system.highest.blocks)


def _highest(found: Headroom) -> Table:
    head = ["system", "highest rate", CI, *(["vs. today"] if found.today else []), "blocks"]
    ratios: tuple[RateInterval | None, ...] = (None, *found.ratios)
    if len(found.systems) > 1:
        head += [f"vs. {found.systems[0].name}", f"{CI} of the ratio"]
    rows: list[Row] = []
    for system, ratio in zip(found.systems, ratios, strict=True):
        rate = None if system.above or system.below else system.highest
        row: list[Content] = [
            system.name,
            TableCell(rate.value, "1/s") if rate else _bound(system),
            _bounds(rate, "1/s"),
        ]
        if found.today:
            row.append(TableCell(rate.value / found.today, "times") if rate else ABSENT)
        row.append(count(rate.blocks if rate else 0))
        if len(found.systems) > 1:
            row += [TableCell(ratio.value, "times") if ratio else ABSENT, _bounds(ratio, "times")]
        rows.append(tuple(row))
    return Table(tuple(head), tuple(rows))


def _bound(system: SystemHeadroom) -> Missing:
    """Returns the cell for a highest rate that is above or below all measured rates."""
    if system.above:
        return Missing(f"above {quantity(system.above_rate, '1/s')}")
    return Missing(f"below {quantity(system.below_rate, '1/s')}") if system.below else ABSENT


def _bounds(found: RateInterval | None, unit: str) -> TableCell | Missing:
    if found is None:
        return ABSENT
    if found.low is None:
        return Missing(f"needs {LEAST_BLOCKS} blocks")
    return TableCell(None, unit, found.low, found.high, confidence=CONFIDENCE)


def _chart(found: Headroom) -> Chart:
    metric, names = found.limit.metric, [one.name for one in found.systems]
    table = _by_rate(found)
    limit = found.limit.high or 0.0
    ends = [end for one in found.systems for at in one.rates if at.summary for end in (at.summary.low, at.summary.high)]
    suffix, factor = scale("s", [*ends, limit])
    means, missed = _chart_points(found, factor)
    kind, axis = base.value_scale([*(end / factor for end in ends), limit / factor], _LOG_TIMES)
    x = {
        "field": "rate",
        "type": "quantitative",
        "scale": {"nice": False, "zero": False},
        "axis": {"title": "target rate, per second", "format": ",d"},
    }
    y = {"field": "value", "type": "quantitative", "axis": {**axis, "title": None}, "scale": kind}
    styles = (base.colour(names), base.shape(names))
    tooltip = [{"field": "system"}, {"field": "rate", "format": ",d"}, {"field": "text", "title": "value"}]
    ring = {
        "data": {"name": "missed"},
        "mark": {"type": "point", "shape": "circle", "size": 160, "stroke": "@warn", "strokeDash": [2, 2]},
        "encoding": {"x": x, "y": y, "tooltip": tooltip},
    }
    data = {"means": means, "missed": missed, "limit": [{"value": limit / factor}]}
    keys = [*base.keys(names), Key(f"limit, {quantity(limit, 's')}", "warn", "dash")]
    layers = [
        _line("limit", "y", {**y, "title": None}),
        joined("means", x, y, styles[0], 0.6),
        ring,
        *whiskered("means", x, y, styles, tooltip, stroke="@paper", strokeWidth=1),
    ]
    if found.today is not None:
        data["today"] = [{"rate": found.today}]
        layers.insert(1, _line("today", "x", x))
        keys.append(Key(f"today's rate, {quantity(found.today, '1/s')}", "muted", "dash"))
    if missed:
        keys.append(Key("ring: target rate missed in at least one trial", "warn", "ring"))
    return Chart(
        "headroom",
        f"{upper_first(metric_words(metric))} at each target rate",
        f"{upper_first(metric_words(metric))} at each target rate. {base.each_row(table)}.",
        base.specification(layers, data, 300),
        table,
        suffix + (", logarithmic" if kind.get("type") == "log" else ""),
        tuple(keys),
        "Whiskers: range of the blocks.",
        wide=True,
    )


def _line(data: str, along: str, encoding: dict[str, Any]) -> dict[str, Any]:
    """Returns a layer with a dashed line across the chart, for the limit or for today's rate."""
    colour = "@warn" if data == "limit" else "@muted"
    return {
        "data": {"name": data},
        "mark": {"type": "rule", "stroke": colour, "strokeDash": [5, 4], "strokeWidth": 1.3},
        "encoding": {along: encoding},
    }


def _chart_points(found: Headroom, factor: float) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns the Vega data of all points. The second list contains only the points at rates that were not sustained in
    every trial."""
    means, missed = list[dict[str, Any]](), list[dict[str, Any]]()
    for system in found.systems:
        for at in system.rates:
            if at.summary is None:
                continue
            row = {"system": system.name, "rate": at.rate, **base.figures(with_range(at.summary, "s"), factor)}
            means.append(row)
            missed += [row] if at.sustained < at.trials else []
    return means, missed


def _by_rate(found: Headroom) -> Table:
    rates = sorted({at.rate for one in found.systems for at in one.rates})
    rows: list[Row] = []
    for rate in rates:
        row: list[Content] = [quantity(rate, "1/s")]
        for system in found.systems:
            at = next((one for one in system.rates if one.rate == rate), None)
            lost = at.trials - at.sustained if at else 0
            note = f"not sustained in {lost} of {at.trials}" if at and lost else ""
            row.append(with_range(at.summary, "s", note) if at and at.summary else ABSENT)
        rows.append(tuple(row))
    return Table(("target rate", *(one.name for one in found.systems)), tuple(rows))


def _fields(found: Headroom) -> dict[str, Any]:
    """Returns the content of the page for programs. Values are in base units, and metrics have the same names as in
    records."""
    ratios = (None, *found.ratios)
    # If a block has only a bound, the mean over the other blocks is biased.
    rates = [None if one.above or one.below else one.highest for one in found.systems]
    return {
        "schema": 1,
        "limit": {"text": found.limit.text, "metric": found.limit.metric, "most": found.limit.high},
        "today": found.today,
        "decided": found.decided,
        "paired": found.paired,
        "systems": [
            {
                "system": one.name,
                "highest_rate": _interval(highest),
                "growth": _interval(highest.over(found.today)) if highest and found.today else None,
                "ratio": _interval(ratio),
                "blocks_above_highest_rate": one.above,
                "blocks_below_lowest_rate": one.below,
                "flagged": one.flagged,
                "rates": [
                    {
                        "rate": at.rate,
                        "trials": at.trials,
                        "sustained": at.sustained,
                        found.limit.metric: at.summary.centre if at.summary else None,
                    }
                    for at in one.rates
                ],
            }
            for one, highest, ratio in zip(found.systems, rates, ratios, strict=True)
        ],
    }


def _interval(found: RateInterval | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"value": found.value, "low": found.low, "high": found.high, "blocks": found.blocks}
