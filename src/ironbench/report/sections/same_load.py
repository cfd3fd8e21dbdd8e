"""Response times of configurations that ran at the same rate. Charts show the range of the blocks, and a point for each
block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ironbench.model.finding import Finding
from ironbench.model.lab import Configuration
from ironbench.report import theme
from ironbench.report.cell import EMPTY, Missing, Row, TableCell, centre, count, with_range
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Depth, Key, Table, joined, places, whiskered
from ironbench.report.finding_tables import interval_cell, ratio_cell
from ironbench.report.numbers import quantity, scale
from ironbench.report.page import Section
from ironbench.report.wording import terms
from ironbench.report.wording.answers.ratios import metric_words
from ironbench.report.wording.values import CI
from ironbench.study.same_load import RatedSide, SameLoad
from ironbench.study.study import Study
from ironbench.words import counted, upper_first

PLACE = 800
_LEAD = (
    "In a closed loop, a faster system gets more work, so response times of two systems are not at the same "
    "load. In this section, all systems run at the same transaction rate, a percentage of the baseline's peak "
    "throughput. Response times count from the scheduled start, and percentiles are computed from the "
    "transactions of all trials of a configuration. Ratios are means of the ratios within each block and can "
    "differ from the ratio of two percentiles. These ratios carry no verdict; the verdict of a claim about "
    "configurations at a target rate is listed with the claims."
)


def sections(study: Study) -> Iterator[Section]:
    charts = tuple(replace(chart, depth=Depth.DOCUMENT) for chart in same_load(study))
    tables = tuple(same_load_tables(study.same_loads))
    yield Section(
        "same-load", "Response times at the same load (without verdict)", _LEAD, charts, tables, printed_at_end=True
    )


_WANTED = tuple(f"response_time_{part}_s" for part in ("p50", "p90", "p99", "p999"))
_LOG_TIMES = 40
_GROUP = 0.74
"""At each rate, the configurations are side by side. Together, they take this fraction of the distance to the next
rate."""
_WITHIN = 0.6
"""The points of a configuration take this fraction of the configuration's width."""


@dataclass(frozen=True, slots=True)
class _Rate:
    """A target rate and the results of each configuration at this rate."""

    share: float
    rate: float | None
    sides: dict[str, RatedSide]

    @property
    def words(self) -> list[str]:
        return [quantity(self.share, "share"), *([quantity(self.rate, "1/s")] if self.rate else [])]


def same_load(study: Study) -> list[Chart]:
    """Returns a chart for each percentile. Returns an empty list if no configuration ran at a fixed rate, or if there
    are too many configurations to distinguish."""
    rates = _rates(study)
    there = {name for rate in rates for name in rate.sides}
    names = [cell.name for cell in study.cells]
    if not there or len(names) > theme.SYSTEMS:
        return []
    shown = [name for name in names if name in there]
    return [
        _chart(metric, names, shown, rates)
        for metric in _WANTED
        if any(metric in side.times for rate in rates for side in rate.sides.values())
    ]


def _rates(study: Study) -> list[_Rate]:
    by_share: dict[float, _Rate] = {}
    for one in study.same_loads:
        rate = by_share.setdefault(one.share, _Rate(one.share, one.rate, {}))
        for side in (one.baseline, one.cell):
            rate.sides.setdefault(side.name, side)
    return [by_share[share] for share in sorted(by_share)]


def _chart(metric: str, names: list[str], shown: list[str], rates: Sequence[_Rate]) -> Chart:
    times = [side.times[metric] for rate in rates for side in rate.sides.values() if metric in side.times]
    highest = max(point.value_s for time in times for point in time.points)
    suffix, factor = scale("s", [highest])
    table = _table(metric, shown, rates)
    means, points = _rows(metric, table, shown, rates, factor)
    reach = [row[end] for row in means for end in ("low", "high")] + [row["value"] for row in points]
    kind, axis = base.value_scale(reach, _LOG_TIMES)
    y = {"field": "value", "type": "quantitative", "axis": {**axis, "title": None}, "scale": kind}
    behind = any(not row["kept"] for row in points)
    repeated = any(time.summary.low < time.summary.high for time in times)
    words = metric_words(metric)
    x = places("% of the baseline's peak throughput", [rate.words for rate in rates])
    return Chart(
        f"same-load-{metric}",
        f"{upper_first(words)} at the same load",
        _alt(metric, table),
        base.specification(_layers(_styles(names, shown), x, y, behind), {"means": means, "points": points}, 260),
        table,
        suffix + (", logarithmic" if kind.get("type") == "log" else ""),
        (*(key for key in base.keys(names) if key.label in shown), *_marks(behind, repeated)),
    )


def _marks(behind: bool, repeated: bool) -> tuple[Key, ...]:
    keys = [Key("range of the blocks", "muted", "line")] if repeated else []
    keys.append(Key("pale point: one block", "muted", "circle"))
    return (*keys, *([Key("ring: target rate not sustained", "warn", "ring")] if behind else []))


def _rows(
    metric: str, table: Table, shown: list[str], rates: Sequence[_Rate], factor: float
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns the Vega data as two lists. The first contains the values of each configuration and rate over all blocks.
    The second contains a point for each block. Configurations at the same rate are side by side. The points of a
    configuration are in the order of the blocks."""
    means: list[dict[str, Any]] = []
    points: list[dict[str, Any]] = []
    place = _GROUP / len(shown)
    for at, (rate, (words, *cells)) in enumerate(zip(rates, table.rows, strict=True)):
        for number, (name, cell) in enumerate(zip(shown, cells, strict=True)):
            if not isinstance(cell, TableCell):
                continue
            time = rate.sides[name].times[metric]
            middle = at + (number - (len(shown) - 1) / 2) * place
            common = {"system": name, "at": words}
            means.append({**common, "place": middle, **base.figures(cell, factor)})
            last = max(point.block for point in time.points) or 1
            points += [
                {
                    **common,
                    "place": middle + (point.block / last - 0.5) * place * _WITHIN,
                    "value": point.value_s / factor,
                    "text": quantity(point.value_s, "s"),
                    "block": point.block + 1,
                    "kept": point.kept,
                }
                for point in time.points
            ]
    return means, points


def _styles(names: list[str], shown: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the encodings of colour and shape for the configurations in `shown`. Colours and shapes are the same as
    in other charts."""
    styles = []
    for encoding in (base.colour(names), base.shape(names)):
        known = dict(zip(names, encoding["scale"]["range"], strict=True))
        styles.append({**encoding, "scale": {"domain": shown, "range": [known[name] for name in shown]}})
    return styles[0], styles[1]


def _layers(
    styles: tuple[dict[str, Any], dict[str, Any]], x: dict[str, Any], y: dict[str, Any], behind: bool
) -> list[dict[str, Any]]:
    colour, _ = styles
    common = [{"field": "system", "title": "configuration"}, {"field": "at", "title": "rate"}]
    of_block = [*common, {"field": "block"}, {"field": "text", "title": "value"}]
    of_mean = [*common, {"field": "text", "title": "all blocks"}]
    point = {
        "data": {"name": "points"},
        "mark": {"type": "point", "filled": True, "shape": "circle", "size": 34, "opacity": 0.5},
        "encoding": {"x": x, "y": y, "color": colour, "tooltip": of_block},
    }
    doubtful = {
        "data": {"name": "points"},
        "transform": [{"filter": "!datum.kept"}],
        "mark": {"type": "point", "shape": "circle", "size": 110, "stroke": "@warn", "strokeDash": [2, 2]},
        "encoding": {"x": x, "y": y, "tooltip": of_block},
    }
    shown = whiskered("means", x, y, styles, of_mean, stroke="@paper", strokeWidth=1)
    return [joined("means", x, y, colour, 0.5), point, *([doubtful] if behind else []), *shown]


def _alt(metric: str, table: Table) -> str:
    return (
        f"{upper_first(metric_words(metric))} at percentages of the baseline's peak throughput. {base.each_row(table)}."
    )


def _table(metric: str, shown: list[str], rates: Sequence[_Rate]) -> Table:
    rows = []
    for rate in rates:
        times = [rate.sides[name].times.get(metric) if name in rate.sides else None for name in shown]
        rows.append((" · ".join(rate.words), *(with_range(time.summary, "s") if time else EMPTY for time in times)))
    return Table(("load", *shown), tuple(rows))


_SHOWN = (("response_time_p50_s", "median"), ("response_time_p99_s", "p99"))
"""Percentiles that the tables show. The JSON document contains all percentiles."""
_LEAST_BLOCKS = 3
"""Minimum number of blocks for a confidence interval. With two blocks, Student's t distribution has one degree of
freedom, and intervals extend over many orders of magnitude."""


def same_load_tables(loads: Sequence[SameLoad]) -> list[tuple[str, Table]]:
    """Returns a table for each comparison, with a row for each rate: the times of both sides and their ratio."""
    by_sides: dict[tuple[Configuration, ...], list[SameLoad]] = {}
    for one in loads:
        by_sides.setdefault((*one.sides, one.where), []).append(one)
    return [(terms.compared(*own[0].sides, own[0].where), _times_table(own)) for own in by_sides.values()]


def _times_table(loads: Sequence[SameLoad]) -> Table:
    behind = any(map(_behind, loads))
    head = ["load", "rate", *(word for _, name in _SHOWN for word in (name, "baseline", "ratio", CI)), "blocks"]
    head += ["caveat"] if behind else []
    rows: list[Row] = []
    for one in loads:
        by_metric = {finding.metric: finding for finding in one.findings}
        cells = [word for metric, _ in _SHOWN for word in _times(one, metric, by_metric.get(metric))]
        blocks = max(finding.blocks for finding in one.findings)
        rate = TableCell(one.rate, "1/s") if one.rate else EMPTY
        known = [_behind(one)] if behind else []
        rows.append((TableCell(one.share, "share"), rate, *cells, count(blocks), *known))
    return Table(tuple(head), tuple(rows))


def _times(one: SameLoad, metric: str, finding: Finding | None) -> Row:
    """Returns the cells with the times of both sides, their ratio, and the ratio's confidence interval."""
    if finding is None:
        return EMPTY, EMPTY, EMPTY, EMPTY
    known = interval_cell(finding) if finding.blocks >= _LEAST_BLOCKS else Missing("too few blocks")
    return _time(one.cell, metric), _time(one.baseline, metric), ratio_cell(finding), known


def _time(side: RatedSide, metric: str) -> TableCell | Missing:
    time = side.times.get(metric)
    return centre(time.summary if time else None, "s")


def _behind(one: SameLoad) -> str:
    """Names the sides that did not sustain the rate, with the number of trials in which they did not."""
    names = zip(one.sides, (one.cell, one.baseline), strict=True)
    texts = [
        f"{terms.configuration(name)} did not sustain the rate in {side.behind} of {counted(side.trials, 'trial')}"
        for name, side in names
        if side.behind
    ]
    return "; ".join(texts)
