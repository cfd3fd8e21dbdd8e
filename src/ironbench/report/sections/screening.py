"""Results of a screening experiment, which estimates the effect of each factor. Later blocks check these effects."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ironbench.report.charts import base, rows
from ironbench.report.charts.base import Chart, Depth, Key, Table
from ironbench.report.charts.effects import axis_of, ticks
from ironbench.report.numbers import percent_change, quantity
from ironbench.report.page import Section, with_rows
from ironbench.report.screening import EFFECT, NO_EFFECT, screened_table
from ironbench.report.wording.answers.ratios import metric_words
from ironbench.report.wording.answers.screening import method
from ironbench.study.screen import Screen, ScreenedFactor
from ironbench.study.study import Study
from ironbench.words import upper_first

PLACE = 150


def sections(study: Study) -> Iterator[Section]:
    screen = study.screen
    if screen is None or not screen.factors:
        return
    # Only HTML pages and pictures show the chart, because the table contains the same figures.
    charts = tuple(replace(chart, depth=Depth.PAGE) for chart in screened(screen))
    how = method(screen.runs, len(screen.factors), screen.blocks, screen.spread, screen.freedom)
    yield Section("screen", "Screening of factors", how, charts, with_rows(screened_table(screen)), printed_at_end=True)


_STYLES = {EFFECT: ("s2", "triangle-up"), NO_EFFECT: ("muted", "circle")}
_ROOM = 0.06


def screened(screen: Screen) -> list[Chart]:
    """Draws the effect of each factor. Returns an empty list if no effect could be estimated."""
    if not screen.factors:
        return []
    ends = [math.log(end) for one in screen.factors for end in (one.low, one.high, *one.blocks)]
    low, high = min(-0.05, *ends), max(0.05, *ends)
    domain = base.ratio_domain(low, high, _ROOM)
    table = screened_table(screen)
    data = rows.with_positions([_row(one, words) for one, words in zip(screen.factors, table.texts, strict=True)])
    points = [
        {"below": row["below"], "block": block, "ratio": value, "text": quantity(value, "ratio")}
        for row, one in zip(data, screen.factors, strict=True)
        for block, value in enumerate(one.blocks, 1)
    ]
    words = metric_words(screen.metric)
    return [
        Chart(
            "screen",
            f"{upper_first(words)}: effects of the factors",
            _alt(table, words),
            base.specification(
                _layers(
                    len(data),
                    domain,
                    axis_of(screen.metric, "ratio of the metric: last value of the factor / first value"),
                ),
                {"effects": data, "blocks": points},
                rows.height(len(data)),
            ),
            table,
            "ratio with confidence interval, logarithmic scale",
            (*(Key(name, *style) for name, style in _STYLES.items()), Key("pale point: one block", "muted", "dots")),
            wide=True,
        )
    ]


def _row(one: ScreenedFactor, words: Sequence[str]) -> dict[str, Any]:
    """Returns the Vega data of one factor. `words`: the factor's row of the table."""
    name, levels, _, interval, verdict, *_ = words
    return {
        "name": f"{name}: {levels}",
        "ratio": one.ratio,
        "low": one.low,
        "high": one.high,
        "kind": EFFECT if one.matters else NO_EFFECT,
        "text": f"{percent_change(one.ratio)} · {verdict}",
        "interval": interval,
    }


def _layers(count: int, domain: list[float], title: str) -> list[dict[str, Any]]:
    x, y = rows.ratio_axis(title, domain, ticks(domain)), rows.place(count)
    tooltip = [
        {"field": "name", "title": "factor"},
        {"field": "text", "title": "change"},
        {"field": "interval", "title": "confidence interval"},
    ]
    one: dict[str, Any] = {
        "mark": {"type": "rule", "color": "@muted", "strokeWidth": 1.2},
        "encoding": {"x": {**x, "datum": 1.0}},
    }
    del one["encoding"]["x"]["field"]
    return [
        {**one, "data": {"name": "effects"}},
        *rows.frame(count, "effects", "text"),
        rows.blocks(x, y),
        *rows.ratios("effects", x, y, rows.styles("kind", _STYLES), tooltip),
    ]


def _alt(table: Table, metric: str) -> str:
    words = [
        f"{name} {levels}: {ratio}, {interval}, {verdict}" for name, levels, ratio, interval, verdict, *_ in table.texts
    ]
    return f"Ratios of {metric}: the factor's last value divided by its first value. {'; '.join(words)}."
