"""The effect chart. Each row shows the ratio of a comparison with its confidence interval, and the ratios of the blocks
as small points below. The axis is logarithmic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ironbench.catalogue import better
from ironbench.model.finding import Conclusion, Finding
from ironbench.report.charts import base, rows
from ironbench.report.charts.base import Chart, Key, Table
from ironbench.report.finding_tables import finding_table
from ironbench.report.numbers import percent, percent_change, quantity
from ironbench.report.wording import terms
from ironbench.report.wording.answers.ratios import has_interval, metric_words
from ironbench.words import upper_first

if TYPE_CHECKING:
    from ironbench.study.study import Study

# Colour and mark of each conclusion. Marks differ, so that conclusions can be distinguished in prints without colour.
STYLES = {
    Conclusion.FASTER: ("s2", "triangle-up"),
    Conclusion.SLOWER: ("s1", "triangle-down"),
    Conclusion.EQUIVALENT: ("s0", "square"),
    Conclusion.CANNOT_TELL: ("muted", "circle"),
}
_TICKS = (
    0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0, 1.02, 1.05, 1.1, 1.15, 1.2, 1.3,
    1.5, 1.7, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 20.0, 50.0, 100.0,
)  # fmt: skip
_MOST_TICKS = 8
_MARKS = 0.18
"""Distance from the middle of a row's marks to the upper edge of the equivalence band, as a fraction of a row."""
_LONG = 70
"""The chart shortens names with more characters. The table always contains the full name."""
_MOST_PERCENT = 2.0
"""Ratios below this value are written as a change in percent, larger ratios as a multiple. A multiple is easier to read
than an increase by more than 100%."""
_REACH = 1.6
"""Limits the length of the axis, because confidence intervals from few blocks may be infinite. The axis ends at the
largest block ratio raised to this power, and longer confidence intervals are clipped."""


def effects(study: Study) -> list[Chart]:
    """Draws all comparisons that have verdicts in one chart. Returns an empty list if nothing was compared."""
    shown = [finding for finding in study.findings if finding.ratios]
    if not shown:
        return []
    margin = shown[0].margin
    domain = _domain(shown, margin)
    table = finding_table(shown)
    data = rows.with_positions(
        [_row(finding, domain, words) for finding, words in zip(shown, table.texts, strict=True)]
    )
    # The equivalence band is drawn only beside the marks, because a name is hard to read on top of it.
    shaded = [
        {"low": 1 / (1 + margin), "high": 1 + margin, "top": row["place"] - _MARKS, "line": row["line"]} for row in data
    ]
    points = [
        {"below": row["below"], "block": block + 1, "ratio": ratio, "text": quantity(ratio, "ratio")}
        for row, finding in zip(data, shown, strict=True)
        for block, ratio in finding.ratios
        if ratio > 0 and math.isfinite(ratio)
    ]
    ended = [conclusion for conclusion in STYLES if any(one.conclusion is conclusion for one in shown)]
    x = rows.ratio_axis(axis_of(study.metric, "ratio to the baseline"), domain, ticks(domain))
    layers = _layers(len(shown), x, ended)
    repeated = [row for row, finding in zip(data, shown, strict=True) if has_interval(finding)]
    datasets = {"effects": data, "intervals": repeated, "blocks": points, "margin": shaded}
    keys = [Key(conclusion.word, STYLES[conclusion][0], STYLES[conclusion][1]) for conclusion in ended]
    keys.append(Key(f"equivalent within {percent(margin)}", "rule", "square"))
    keys.append(Key("pale point: one block", "muted", "dots"))
    return [
        Chart(
            "effects",
            f"{upper_first(metric_words(study.metric))} relative to the baseline",
            _alt(table, study.metric),
            base.specification(layers, datasets, rows.height(len(shown))),
            table,
            "ratio with confidence interval, logarithmic scale"
            if repeated
            else "ratio, logarithmic scale; there are too few blocks for a confidence interval",
            tuple(keys),
            wide=True,
        )
    ]


def _row(finding: Finding, domain: list[float], words: Sequence[str]) -> dict[str, Any]:
    """Returns the Vega data of one comparison. `words`: the comparison's row of the table."""
    _, _, interval, *_ = words
    return {
        "name": _short(finding),
        "ratio": finding.ratio,
        "low": min(max(finding.low, domain[0]), domain[1]),
        "high": max(min(finding.high, domain[1]), domain[0]),
        "conclusion": finding.conclusion.word,
        "text": f"{_change(finding.ratio)} · {finding.conclusion.word}{', drifting' if finding.changed else ''}",
        "interval": interval,
        "blocks": finding.blocks,
    }


def _change(ratio: float) -> str:
    """Formats a ratio as a change, such as `−60%`, or as a multiple, such as `19.4x`."""
    return percent_change(ratio) if ratio < _MOST_PERCENT else quantity(ratio, "ratio")


def _short(finding: Finding) -> str:
    """Returns the name of a comparison. A long name leaves out the baseline."""
    name = terms.comparison(finding)
    where = f", with {terms.configuration(finding.where)}" if finding.where.values else ""
    return name if len(name) <= _LONG else terms.configuration(finding.sides[0]) + where


def _domain(shown: Sequence[Finding], margin: float) -> list[float]:
    """Returns the range of the axis. The range contains 1, the equivalence margin, the ratios of all blocks, and the
    confidence intervals up to the limit that `_REACH` sets."""
    ratios = [math.log(ratio) for one in shown for _, ratio in one.ratios if ratio > 0 and math.isfinite(ratio)] or [
        0.0
    ]
    reach = _REACH * max(max(map(abs, ratios)), math.log1p(margin) * 1.5)
    ends = [math.log(end) for one in shown if has_interval(one) for end in (one.low, one.high)]
    edge = math.log1p(margin) * 1.4
    low = min(-edge, *ratios, *(max(end, -reach) for end in ends))
    high = max(edge, *ratios, *(min(end, reach) for end in ends))
    return base.ratio_domain(low, high)


def ticks(domain: list[float]) -> list[float]:
    return base.ratio_ticks(domain, _TICKS, _MOST_TICKS)


def _layers(count: int, x: dict[str, Any], ended: Sequence[Conclusion]) -> list[dict[str, Any]]:
    y = rows.place(count)
    tooltip = [
        {"field": "name", "title": "comparison"},
        {"field": "text", "title": "change"},
        {"field": "interval", "title": "confidence interval"},
        {"field": "blocks", "title": "blocks"},
    ]
    margin = {
        "data": {"name": "margin"},
        "mark": {"type": "rect", "color": "@rule", "opacity": 0.35},
        "encoding": {
            "x": {**x, "field": "low"},
            "x2": {"field": "high"},
            "y": {**y, "field": "top"},
            "y2": {"field": "line"},
        },
    }
    one: dict[str, Any] = {
        "data": {"name": "margin"},
        "mark": {"type": "rule", "color": "@muted", "strokeWidth": 1.2},
        "encoding": {"x": {**x, "datum": 1.0}, "y": {**y, "field": "top"}, "y2": {"field": "line"}},
    }
    del one["encoding"]["x"]["field"]
    styles = rows.styles("conclusion", {conclusion.word: STYLES[conclusion] for conclusion in ended})
    marks = rows.ratios("intervals", x, y, styles, tooltip)
    return [margin, one, *rows.frame(count, "effects", "text"), rows.blocks(x, y), *marks]


def axis_of(metric: str, what: str) -> str:
    """Returns the title of a ratio axis. Arrows in the title show which direction is better."""
    direction = better(metric)
    if direction == "neither":
        return what
    worse, good = ("worse", "better") if direction == "higher" else ("better", "worse")
    return f"← {worse}  ·  {what}  ·  {good} →"


def _alt(table: Table, metric: str) -> str:
    words = [f"{name}: {ratio}, {interval}, {verdict}" for name, ratio, interval, verdict, *_ in table.texts]
    return f"Ratios of {metric_words(metric)} to the baseline. {'; '.join(words)}."
