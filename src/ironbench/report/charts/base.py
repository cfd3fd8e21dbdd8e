"""Values, scales and axes that all charts share."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from ironbench.report import theme
from ironbench.report.cell import Missing, Row, TableCell, cell_text
from ironbench.words import clean_document

_DECADES = 3.45
"""An axis with more decades than this has no room for ticks between the powers of ten."""
LOG_CLIENTS = 60


class Depth(Enum):
    """The kinds of output that show a section or chart. A terminal has less room than a file, and only HTML pages can
    fold a section."""

    EVERYWHERE = 1
    DOCUMENT = 2
    """Shown in files, but not on the terminal."""
    PAGE = 3
    """Shown only on HTML pages, in pictures, and in files for programs."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of cells. The first column is aligned to the left, all others to the right."""

    head: tuple[str, ...]
    rows: tuple[Row, ...]
    words: bool = False
    """Whether the columns contain words, which are aligned to the left."""
    counted: bool = False
    """Whether text and Markdown show only the number of rows, because the table is long. HTML pages and files for
    programs always show the whole table."""
    ranks: tuple[int, ...] = ()
    """The rank of each column. A narrow terminal leaves out the column with the highest rank first, and never leaves
    out columns with rank 0. Sentences in the last column are wrapped."""

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The rows of the table, formatted for people."""
        return tuple(tuple(map(cell_text, row)) for row in self.rows)


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of a legend. On HTML pages, the legend is text that can wrap. In pictures, Vega draws the legend."""

    label: str
    colour: str
    """Name of a colour of the theme, without `@`."""
    mark: str
    """Name of a symbol, or `line`, `dash` or `dot` for a stroke."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart. `alt` and `table` contain its content for readers who cannot see the chart."""

    id: str
    title: str
    alt: str
    specification: dict[str, Any]
    table: Table
    unit: str = ""
    """Unit of the vertical axis. The unit is shown beside the chart's title, because text along the axis would be
    vertical."""
    legend: tuple[Key, ...] = ()
    note: str = ""
    wide: bool = False
    """Whether the chart takes the whole width of a page."""
    depth: Depth = Depth.EVERYWHERE

    @property
    def embedded(self) -> dict[str, Any]:
        """The specification for an HTML page. Marks have no ARIA labels, because the page contains an alternative text
        and a table with all figures."""
        config = {**self.specification["config"], "aria": False}
        found: dict[str, Any] = clean_document({"description": self.alt, **self.specification, "config": config})
        return found


def specification(
    layers: list[dict[str, Any]], datasets: dict[str, list[dict[str, Any]]], height: int = 280
) -> dict[str, Any]:
    """Returns a layered chart as wide as its container. Colours remain tokens until a theme is chosen. Layers without
    data are left out, because Vega would warn that it cannot compute their scale."""
    layers = [one for one in layers if datasets.get(one.get("data", {}).get("name", ""), True)]
    return {
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": {"left": 2, "right": 14, "top": 6, "bottom": 2},
        "datasets": datasets,
        "layer": layers,
        "config": theme.config(),
    }


def figures(cell: TableCell, factor: float = 1.0) -> dict[str, Any]:
    """Returns the value, range and text of a cell as fields of a Vega data row. Numbers are divided by `factor`, which
    converts base units to the unit of the axis."""
    value = math.nan if cell.value is None else cell.value
    low, high = (value if end is None else end for end in (cell.low, cell.high))
    return {"value": value / factor, "low": low / factor, "high": high / factor, "text": cell_text(cell)}


def data(table: Table, row: str, column: str, factor: float = 1.0) -> list[dict[str, Any]]:
    """Returns the cells of a table as Vega data. Each cell becomes a data row. `row` and `column` are the names of the
    fields that contain the first cell of the table row and the head of the column."""
    return [
        {row: first.value if isinstance(first, TableCell) else cell_text(first), column: head, **figures(cell, factor)}
        for first, *cells in table.rows
        for head, cell in zip(table.head[1:], cells, strict=True)
        if isinstance(cell, TableCell)
    ]


def each_value(table: Table) -> str:
    """Describes a chart in words, value by value: `read, from the device: 12.3 µs; …`."""
    return "; ".join(
        f"{cell_text(row[0])}, {head}: {text}" for row in table.rows for head, text in _tooltip_pairs(table, row)
    )


def each_row(table: Table, columns: Collection[str] = ()) -> str:
    """Describes a chart in words, row by row: `log on disk: server 37%, client 12%; …`. `columns`: heads of the columns
    to describe. If it is empty, all columns are described."""
    told = (
        (row[0], [one for one in _tooltip_pairs(table, row) if not columns or one[0] in columns]) for row in table.rows
    )
    return "; ".join(f"{cell_text(name)}: {', '.join(f'{head} {text}' for head, text in own)}" for name, own in told)


def each_line(table: Table, unit: str) -> str:
    """Describes each line of a chart by its first and last value: `log on disk: 530/s with 1 to 2 560/s with 20
    clients; …`."""
    lines = []
    for at, name in enumerate(table.head[1:], 1):
        cells = [(cell_text(row[0]), cell) for row in table.rows if isinstance(cell := row[at], TableCell)]
        ends = [
            f"{cell_text(replace(cell.alone, note=''))} with {place}" for place, cell in (*cells[:1], *cells[1:][-1:])
        ]
        if ends:
            lines.append(f"{name}: {' to '.join(ends)} {unit}")
    return "; ".join(lines)


def _tooltip_pairs(table: Table, row: Row) -> list[tuple[str, str]]:
    """Returns pairs of a column head and the cell's text. Cells without a value are left out."""
    return [
        (head, cell_text(one))
        for head, one in zip(table.head[1:], row[1:], strict=True)
        if not isinstance(one, Missing)
    ]


def colour(names: list[str], drawn: Collection[str] | None = None) -> dict[str, Any]:
    """Returns the Vega encoding that gives each system its colour. A system has the same colour in every chart.
    `names`: all systems of the report. `drawn`: the systems in this chart. If it is None, the chart contains all
    systems."""
    scale = theme.system_colours(names)
    if drawn is not None:
        known = [pair for pair in zip(scale["domain"], scale["range"], strict=True) if pair[0] in drawn]
        scale = {**scale, "domain": [name for name, _ in known], "range": [token for _, token in known]}
    return {"field": "system", "type": "nominal", "scale": scale}


def shape(names: list[str]) -> dict[str, Any]:
    return {"field": "system", "type": "nominal", "scale": theme.system_marks(names)}


def keys(names: list[str], mark: str = "") -> tuple[Key, ...]:
    """Returns the legend of the systems. A single system needs no legend. `mark`: the mark of all systems. By default,
    each system has its own mark."""
    if len(names) < 2:
        return ()
    return tuple(
        Key(name, f"s{place % theme.SYSTEMS}", mark or theme.MARKS[place % len(theme.MARKS)])
        for place, name in enumerate(names)
    )


_LARGEST_LOG = 690.0
"""Largest natural logarithm whose exponential is still a valid number in JSON."""


def ratio_domain(low: float, high: float, room: float = 0.04) -> list[float]:
    """Returns the ends of a logarithmic axis of ratios. `low` and `high`: natural logarithms of the smallest and the
    largest ratio. `room`: margin at both ends, as a fraction of the range."""
    room *= high - low
    return [math.exp(max(low - room, -_LARGEST_LOG)), math.exp(min(high + room, _LARGEST_LOG))]


def value_scale(values: list[float], factor: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the scale and the axis for measured values. The scale is linear and starts at zero. If the largest value
    is more than `factor` times the smallest one, the scale is logarithmic, because small values could not be
    distinguished from zero."""
    positive = [value for value in values if value and value > 0]
    if not wide_apart(positive, factor):
        return {"zero": True}, {"tickCount": 5, "format": ",~f"}
    inside = decimal_ticks(min(positive) * 0.6, max(positive) * 1.7)
    return {"type": "log", "nice": False, "domain": [min(inside[0], min(positive)), max(inside[-1], max(positive))]}, {
        "values": inside,
        "format": "~g",
    }


def decimal_ticks(low: float, high: float) -> list[float]:
    """Returns the powers of ten between `low` and `high`. If the range covers few decades, also returns ticks such as
    2, 5, 20 and 50."""
    first, last = math.log10(low), math.log10(high)
    steps = (1,) if last - first > _DECADES else (1, 2, 5)
    ticks = [step * 10**power for power in range(math.floor(first), math.ceil(last) + 1) for step in steps]
    return [round(tick, 9) for tick in ticks if low <= tick <= high]


def ratio_ticks(domain: list[float], round_ratios: Sequence[float], most: int) -> list[float]:
    """Selects the ticks of a ratio axis from `round_ratios`. Ticks too close to the previous one are left out, so that
    about `most` ticks remain. The ratio 1 is always included."""
    inside = [tick for tick in round_ratios if domain[0] <= tick <= domain[1]]
    gap = math.log(domain[1] / domain[0]) / most
    kept = [1.0]
    for side in ([t for t in inside if t > 1], [t for t in reversed(inside) if t < 1]):
        last = 1.0
        for tick in side:
            if abs(math.log(tick / last)) >= gap:
                kept.append(tick)
                last = tick
    return sorted(kept)


def wide_apart(values: list[float], factor: float) -> bool:
    """Returns whether the largest value is more than `factor` times the smallest positive value. Small values then need
    a logarithmic axis."""
    positive = [value for value in values if value > 0]
    return bool(positive) and max(positive) / min(positive) > factor


def clients_axis(counts: list[int]) -> dict[str, Any]:
    """Returns the horizontal axis for numbers of clients, which must be in ascending order. If they cover a wide range,
    the axis is logarithmic."""
    log = wide_apart([float(count) for count in counts], LOG_CLIENTS)
    axis: dict[str, Any] = {"title": "clients", "format": "d", "labelOverlap": "greedy", "values": counts}
    kind: dict[str, Any] = {"type": "log", "base": 2} if log else {"zero": False}
    margin = max(1, counts[-1] // 20)
    if not log:
        kind["domain"] = [max(0, counts[0] - margin), counts[-1] + margin]
    return {"field": "clients", "type": "quantitative", "axis": axis, "scale": {**kind, "nice": False}}


def whiskered(
    data: str,
    x: dict[str, Any],
    y: dict[str, Any],
    styles: tuple[dict[str, Any], dict[str, Any]],
    tooltip: Sequence[dict[str, Any]],
    **mark: Any,
) -> list[dict[str, Any]]:
    """Returns a layer with a mark for each mean, and a layer with a whisker from `low` to `high`. `styles`: the
    encodings of colour and shape. `mark`: additional properties of the marks."""
    colour, shape = styles
    whisker = {
        "data": {"name": data},
        "mark": {"type": "rule", "strokeWidth": 2.4, "strokeCap": "round"},
        "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour, "tooltip": tooltip},
    }
    mean = {
        "data": {"name": data},
        "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1, **mark},
        "encoding": {"x": x, "y": y, "color": colour, "shape": shape, "tooltip": tooltip},
    }
    return [whisker, mean]


def joined(data: str, x: dict[str, Any], y: dict[str, Any], colour: dict[str, Any], opacity: float) -> dict[str, Any]:
    """Returns a layer with a thin line that connects the means."""
    return {
        "data": {"name": data},
        "mark": {"type": "line", "strokeWidth": 1.3, "opacity": opacity},
        "encoding": {"x": x, "y": y, "color": colour},
    }


def places(title: str, labels: Sequence[str] | Sequence[Sequence[str]]) -> dict[str, Any]:
    """Returns an axis of equally spaced positions, each with a label. A label that is a list has several lines."""
    return {
        "field": "place",
        "type": "quantitative",
        "scale": {"domain": [-0.5, len(labels) - 0.5], "nice": False, "zero": False},
        "axis": {
            "title": title,
            "values": list(range(len(labels))),
            "labelExpr": f"{json.dumps(labels, ensure_ascii=False)}[datum.value]",
            "ticks": False,
        },
    }
