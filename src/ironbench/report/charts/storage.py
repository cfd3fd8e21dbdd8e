"""Charts of the `storage` workload. Rates are bars with the range of the passes, and latencies are marks on a
logarithmic axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ironbench.report.cell import ABSENT, Row, TableCell, cell_text
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Key, Table
from ironbench.report.charts.grouped import Bar as GroupedBar
from ironbench.report.charts.grouped import Shown, bar_layers, grouped_bars
from ironbench.report.numbers import number, quantity, scale
from ironbench.report.theme import symbols
from ironbench.study.storage import StorageTestResult
from ironbench.study.timelines import TimelineSeries

Parts = Sequence[tuple[str, Sequence[StorageTestResult]]]
"""Pairs of a system's name and the results of its tests."""
Bar = tuple[str, StorageTestResult]
"""A bar's name in the legend, and the test that the bar shows."""

WORDS = {"read": "read", "write": "write", "mix": "mixed"}
_POINTS = (
    ("mean", "storage_latency_mean_s", "diamond"),
    ("median", "storage_latency_p50_s", "circle"),
    ("p99", "storage_latency_p99_s", "triangle-right"),
    ("p99.9", "storage_latency_p999_s", "tick"),
)
_COST = "storage_cpu_per_io_s"
_MEGABYTE = 1e6
"""Number of bytes per MB. Disk benchmarks show every bandwidth in MB/s."""
_RANGE = "Bars show the median of the passes (for KDiskMark's tests, the mean). Lines show the range of the passes."


def rates(parts: Parts) -> list[Chart]:
    """Draws the bandwidth of sequential tests and the IOPS of random tests. For several systems, reads, writes and
    mixed tests have separate charts."""
    charts = []
    for kind, title in (("sequential", "Sequential"), ("random", "Random")):
        tests = [(name, one) for name, lines in parts for one in lines if one.kind == kind]
        if len(parts) == 1:
            bars = [(WORDS[one.direction], one) for _, one in tests]
            charts += _bars(kind, title, bars, list(dict.fromkeys(bar for bar, _ in bars)))
            continue
        for way, word in WORDS.items():
            bars = [(name, one) for name, one in tests if one.direction == way]
            charts += _bars(f"{kind}-{way}", f"{title}, {word}", bars, [name for name, _ in parts])
    return charts


def syncs(parts: Parts) -> list[Chart]:
    bars = [(name, one) for name, lines in parts for one in lines if one.kind == "sync"]
    return _bars("syncs", "Synchronous WAL writes, queue depth 1", bars, [name for name, _ in parts])


def costs(parts: Parts) -> list[Chart]:
    """Draws the CPU time per read for each read size. Reads from the device and reads from the page cache have separate
    bars."""
    bars = [
        GroupedBar(one.title.split()[0].removeprefix("COST"), _cost_name(name, one, len(parts)), one.figures[_COST])
        for name, lines in parts
        for one in lines
        if one.kind == "cost" and _COST in one.figures
    ]
    return grouped_bars(Shown("read-costs", "CPU time per read, by size", "s", wide=True), bars)


def _cost_name(system: str, one: StorageTestResult, systems: int) -> str:
    where = "from the device" if one.name.endswith("-device") else "from the page cache"
    return f"{system}, {where}" if systems > 1 else where


def _bars(id: str, title: str, bars: Sequence[Bar], names: list[str]) -> list[Chart]:
    """Draws the rates of tests as bars. `names`: names in the legend, in order."""
    if not bars:
        return []
    bandwidth, kind = bars[0][1].kind == "sequential", bars[0][1].kind
    factor = _MEGABYTE if bandwidth else 1.0
    words = "MB/s" if bandwidth else "synchronous writes per second" if kind == "sync" else "IOPS"
    table = _table(names, bars, bandwidth)
    rows = [{**row, "label": number(row["value"])} for row in base.data(table, "group", "name", factor)]
    tests = [cell_text(test) for test, *_ in table.rows]
    height = {"type": "quantitative", "axis": {"title": None, "tickCount": 5, "format": ",~f"}}
    layers = bar_layers(tests, names, height, ("test", "series", "rate"), labels=True)
    specification = base.specification(layers, {"bars": rows}, 250)
    return [
        Chart(
            id,
            title,
            f"{title}, {words}. {base.each_value(table)}.",
            specification,
            table,
            words,
            base.keys(names, "square"),
            _RANGE if any(row["low"] != row["high"] for row in rows) else "",
        )
    ]


def _table(names: Sequence[str], bars: Sequence[Bar], bandwidth: bool) -> Table:
    """Returns a row for each test and a column for each bar name."""
    cells = {(one.title, name): _cell(one, bandwidth) for name, one in bars}
    tests = dict.fromkeys(one.title for _, one in bars)
    rows = tuple((test, *(cells.get((test, name), ABSENT) for name in names)) for test in tests)
    return Table(("", *names), rows)


def _cell(one: StorageTestResult, bandwidth: bool) -> TableCell:
    whole = TableCell(one.rate.centre, "MB/s", one.low, one.high)
    if not bandwidth:
        whole = TableCell(one.iops, "1/s", one.low / one.block_bytes, one.high / one.block_bytes)
    return whole if one.low < one.high else whole.alone


def latencies(parts: Parts) -> list[Chart]:
    """Draws a row for each test, with a mark for each percentile."""
    names = [name for name, _ in parts]
    times = {
        (name, f"{one.title} {WORDS[one.direction]}", point): value
        for name, lines in parts
        for one in lines
        for point, metric, _ in _POINTS
        if (value := one.centre(metric))
    }
    if not times:
        return []
    suffix, factor = scale("s", list(times.values()))
    tests = list(dict.fromkeys(test for _, test, _ in times))
    points = [point for point in _POINTS if any(known == point[0] for _, _, known in times)]
    of_rows = [(name, test) for test in tests for name in names]
    table = Table(
        ("", *(point for point, _, _ in points)),
        tuple(
            (
                f"{name}, {test}" if len(names) > 1 else test,
                *(
                    TableCell(value, "s") if (value := times.get((name, test, point))) else ABSENT
                    for point, _, _ in points
                ),
            )
            for name, test in of_rows
        ),
    )
    rows = [
        {"test": test, "system": name, "point": point, **base.figures(cell, factor)}
        for (name, test), (_, *cells) in zip(of_rows, table.rows, strict=True)
        for (point, _, _), cell in zip(points, cells, strict=True)
        if isinstance(cell, TableCell)
    ]
    kind, axis = base.value_scale([row["value"] for row in rows], 25)
    # Marks at the ends of the scale would otherwise overlap the names of the tests.
    kind["padding"] = 8
    return [
        Chart(
            "latencies",
            "I/O latency, all passes",
            f"I/O latency by test. {base.each_row(table)}.",
            base.specification([_dots(tests, names, kind, axis, points)], {"dots": rows}, 40 + 26 * len(tests)),
            table,
            suffix + (", logarithmic" if kind.get("type") == "log" else ""),
            (*base.keys(names, "line"), *(Key(point, "muted", mark) for point, _, mark in points)),
            wide=True,
        )
    ]


def _dots(
    tests: list[str],
    names: list[str],
    kind: dict[str, Any],
    axis: dict[str, Any],
    points: Sequence[tuple[str, str, str]],
) -> dict[str, Any]:
    marks = {"domain": [point for point, _, _ in points], "range": symbols(mark for _, _, mark in points)}
    y_axis = {"title": None, "grid": True, "ticks": False, "domain": False, "labelLimit": 220}
    encoding = {
        "y": {"field": "test", "type": "nominal", "sort": tests, "axis": y_axis},
        "x": {"field": "value", "type": "quantitative", "scale": kind, "axis": {**axis, "title": None, "grid": True}},
        "color": base.colour(names),
        "shape": {"field": "point", "type": "nominal", "scale": marks},
        "tooltip": [{"field": "system"}, {"field": "test"}, {"field": "point"}, {"field": "text", "title": "time"}],
    }
    if len(names) > 1:
        encoding["yOffset"] = {"field": "system", "type": "nominal", "sort": names}
    return {
        "data": {"name": "dots"},
        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 0.9},
        "encoding": encoding,
    }


def sustained(lines: Sequence[tuple[str, TimelineSeries]]) -> list[Chart]:
    """Draws the rate of a long sequential write over time."""
    drawn = [(name, line) for name, line in lines if len(line.value) > 1]
    if not drawn:
        return []
    names = [name for name, _ in drawn]
    unit, factor = scale("bytes/s", [value for _, line in drawn for value in line.value])
    rows = [
        {"system": name, "t": t - line.t_s[0], "value": value / factor, "text": quantity(value, "bytes/s")}
        for name, line in drawn
        for t, value in zip(line.t_s, line.value, strict=True)
    ]
    layer = {
        "data": {"name": "seconds"},
        "mark": {"type": "line", "strokeWidth": 1.7, "interpolate": "step-after"},
        "encoding": {
            "x": {"field": "t", "type": "quantitative", "axis": {"title": "seconds", "tickCount": 8}},
            "y": {"field": "value", "type": "quantitative", "axis": {"title": None, "tickCount": 5}},
            "color": base.colour(names),
            "tooltip": [{"field": "system"}, {"field": "t", "title": "second"}, {"field": "text", "title": "rate"}],
        },
    }
    ends: Iterator[Row] = (
        (name, *(TableCell(end(line.value), "bytes/s") for end in (min, max))) for name, line in drawn
    )
    table = Table(("", "minimum", "maximum"), tuple(ends))
    return [
        Chart(
            "sustained",
            "Sustained sequential write",
            f"Sustained sequential write, second by second. {base.each_row(table)}.",
            base.specification([layer], {"seconds": rows}, 220),
            table,
            unit,
            base.keys(names, "line"),
            wide=True,
        )
    ]
