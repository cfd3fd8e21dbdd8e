"""Charts of all trials of a lab, as points and block by block. Another section shows a typical trial of each system
over time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ironbench.catalogue import base_name
from ironbench.model.record import Record, Status
from ironbench.model.sample import sampled
from ironbench.report import theme
from ironbench.report.cell import EMPTY, Row, TableCell, cell_text, centre, count, failed, spread
from ironbench.report.charts import base, rows
from ironbench.report.charts.base import Chart, Depth, Key, Table
from ironbench.report.charts.timelines import timelines, typical_trials
from ironbench.report.numbers import quantity, scale, unit_of
from ironbench.report.page import Section
from ironbench.report.wording.answers.ratios import metric_words
from ironbench.report.wording.terms import label
from ironbench.study.study import CellResults, Study
from ironbench.study.subjects import counted_in
from ironbench.words import upper_first

PLACE = 1400


def sections(study: Study) -> Iterator[Section]:
    over_blocks = (replace(chart, depth=Depth.DOCUMENT) for chart in by_block(study))
    yield Section("trials", "All trials", charts=(*points(study), *over_blocks), self_titled=True)
    yield Section("over-time", "Over time", typical_trials(study), tuple(timelines(study)), depth=Depth.PAGE)


_MOST_LINES = theme.SYSTEMS
"""Maximum number of configurations that have different colours."""
_LOG = 20


def points(study: Study) -> list[Chart]:
    """Draws a row for each configuration, with a point for each trial and a tick at the median."""
    cells = [cell for cell in study.cells if cell.metric]
    if not cells:
        return []
    unit = unit_of(study.metric)
    suffix, factor = scale(unit, [cell.metric.high for cell in cells if cell.metric])
    table = _table(cells, study.metric)
    names = rows.with_positions([_row(row, factor) for row in table.rows])
    trials = [
        {**_trial(cell, record, study.metric, factor, unit), "place": row["place"]}
        for row, cell in zip(names, cells, strict=True)
        for record in cell.usable
        if study.metric in record.metrics and sampled(record, study.metric)
    ]
    kind, axis = _scale([trial["value"] for trial in trials])
    x = {
        "field": "value",
        "type": "quantitative",
        "scale": kind,
        "axis": {**axis, "title": _title(study, suffix, kind)},
    }
    some_suspect = {trial["status"] for trial in trials} == {Status.OK.word, Status.SUSPECT.word}
    layers = [*rows.frame(len(cells), "cells", "text"), *_points(len(cells), x, _colours(cells), some_suspect)]
    keys = [Key("pale point: one trial", "muted", "circle"), Key("median", "ink", "tick")]
    keys += [Key("dashed ring: flagged trial", "warn", "ring")] if some_suspect else []
    return [
        Chart(
            "points",
            f"{upper_first(metric_words(study.metric))}, all trials",
            f"{upper_first(metric_words(study.metric))} of all trials. {base.each_row(table, ('median',))}.",
            base.specification(layers, {"cells": names, "trials": trials}, rows.height(len(cells))),
            table,
            _title(study, suffix, kind),
            tuple(keys),
            wide=True,
        )
    ]


def by_block(study: Study) -> list[Chart]:
    """Draws the value of each configuration in each block, connected by lines. Returns an empty list if there is only
    one block, or if there are more configurations than colours."""
    cells = [cell for cell in study.cells if cell.metric]
    counted = {record.block for cell in cells for record in cell.usable}
    if not cells or len(cells) > _MOST_LINES or len(counted) < 2:
        return []
    unit = unit_of(study.metric)
    suffix, factor = scale(unit, [cell.metric.high for cell in cells if cell.metric])
    names = [label(cell.configuration) for cell in cells]
    data = [
        {"system": label(cell.configuration), **_trial(cell, record, study.metric, factor, unit)}
        for cell in cells
        for record in cell.usable
        if study.metric in record.metrics and sampled(record, study.metric)
    ]
    kind, axis = _scale([row["value"] for row in data])
    last = max(counted) + 1
    encoding = {
        "x": {
            "field": "block",
            "type": "quantitative",
            "scale": {"domain": [0.7, last + 0.3], "nice": False},
            "axis": {"title": "block", "format": "d", "values": list(range(1, last + 1)), "labelOverlap": "greedy"},
        },
        "y": {"field": "value", "type": "quantitative", "scale": kind, "axis": {**axis, "title": None}},
        "color": base.colour(names),
        "tooltip": _TOOLTIP,
    }
    line = {"data": {"name": "trials"}, "mark": {"type": "line", "strokeWidth": 1.4, "opacity": 0.7}}
    mark = {"data": {"name": "trials"}, "mark": {"type": "point", "filled": True, "size": 54, "opacity": 1}}
    layers = [{**line, "encoding": encoding}, {**mark, "encoding": {**encoding, "shape": base.shape(names)}}]
    return [
        Chart(
            "by-block",
            "Block by block",
            f"{upper_first(metric_words(study.metric))} of each configuration in blocks 1 to {last}.",
            base.specification(layers, {"trials": data}, 280),
            _by_block_table(cells, study.metric),
            _title(study, suffix, kind),
            base.keys(names),
            "If all lines rise or fall together, the cause is the machine and not a configuration.",
            wide=True,
        )
    ]


_TOOLTIP = [
    {"field": "cell", "title": "configuration"},
    {"field": "text", "title": "value"},
    {"field": "block", "title": "block"},
    {"field": "status", "title": "status"},
]


def _row(row: Row, factor: float) -> dict[str, Any]:
    """Returns the Vega data of one configuration. `row`: the configuration's row of the table."""
    name, _, median, *_ = row
    figures = base.figures(median, factor) if isinstance(median, TableCell) else {}
    return {"name": cell_text(name), "median": figures.get("value"), "text": cell_text(median)}


def _trial(cell: CellResults, record: Record, metric: str, factor: float, unit: str) -> dict[str, Any]:
    value = record.metrics[metric]
    return {
        "cell": label(cell.configuration),
        "value": value / factor,
        "text": quantity(value, unit),
        "block": record.block + 1,
        "status": record.status.word,
    }


def _scale(values: Sequence[float]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the scale and the axis for these values. The axis need not start at zero, because the charts show points
    and not bars."""
    if base.wide_apart(list(values), _LOG):
        return base.value_scale(list(values), _LOG)
    low, high = min(values), max(values)
    room = (high - low) * 0.06 or abs(high) * 0.05 or 1.0
    return {"domain": [low - room, high + room], "nice": False, "zero": False}, {"tickCount": 6, "format": ",~r"}


def _title(study: Study, suffix: str, kind: dict[str, Any]) -> str:
    units = counted_in([record for cell in study.cells for record in cell.trials])
    words = f"{units[1]}/s" if base_name(study.metric) == "throughput" else suffix
    return ", ".join(part for part in (words, "logarithmic" if kind.get("type") == "log" else "") if part)


def _colours(cells: Sequence[CellResults]) -> dict[str, Any]:
    """Returns the encoding that gives configurations the same colours as in other charts. If there are more
    configurations than colours, all have the same colour."""
    if len(cells) > _MOST_LINES:
        return {"value": "@s0"}
    return {**base.colour([label(cell.configuration) for cell in cells]), "field": "cell"}


def _points(count: int, x: dict[str, Any], colour: dict[str, Any], some_suspect: bool) -> list[dict[str, Any]]:
    y = rows.place(count)
    median = {
        "data": {"name": "cells"},
        "mark": {"type": "tick", "color": "@ink", "thickness": 2, "size": 24, "orient": "vertical"},
        "encoding": {"x": {**x, "field": "median"}, "y": y},
    }
    each = {
        "data": {"name": "trials"},
        "mark": {"type": "point", "filled": True, "shape": "circle", "size": 64, "opacity": 0.55},
        "encoding": {"x": x, "y": y, "color": colour, "tooltip": _TOOLTIP},
    }
    doubtful = {
        "data": {"name": "trials"},
        "transform": [{"filter": f"datum.status == '{Status.SUSPECT.word}'"}],
        "mark": {"type": "point", "shape": "circle", "size": 170, "stroke": "@warn", "strokeDash": [2, 2]},
        "encoding": {"x": x, "y": y, "tooltip": _TOOLTIP},
    }
    return [median, each, doubtful] if some_suspect else [median, each]


def _table(cells: Sequence[CellResults], metric: str) -> Table:
    unit = unit_of(metric)
    lines = []
    for cell in cells:
        assert cell.metric
        suspect = sum(record.status is Status.SUSPECT for record in cell.usable)
        lines.append(
            (
                label(cell.configuration),
                count(cell.metric.n),
                centre(cell.metric, unit),
                spread(cell.metric, unit),
                failed(cell.usable),
                count(suspect),
            )
        )
    return Table(("configuration", "trials", "median", "range", "failed", "flagged trials"), tuple(lines))


def _by_block_table(cells: Sequence[CellResults], metric: str) -> Table:
    blocks = sorted({record.block for cell in cells for record in cell.usable})
    lines = []
    for block in blocks:
        values = [
            next((one.metrics.get(metric) for one in cell.usable if one.block == block and sampled(one, metric)), None)
            for cell in cells
        ]
        known = [
            EMPTY if value is None or not math.isfinite(value) else TableCell(value, unit_of(metric))
            for value in values
        ]
        lines.append((count(block + 1), *known))
    return Table(("block", *(label(cell.configuration) for cell in cells)), tuple(lines))
