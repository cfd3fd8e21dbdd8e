"""Response times of cells that were given the same work: at each rate an interval per cell, and every block a point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ironbench.analyse.labstudy import LabStudy
from ironbench.analyse.same_load import Side, Time
from ironbench.report import theme
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Key, Table
from ironbench.report.charts.means import joined, places, whiskered
from ironbench.report.findings import metric_words
from ironbench.report.numbers import between, quantity, scale

_WANTED = tuple(f"response_time_{part}_s" for part in ("p50", "p90", "p99", "p999"))
_LOG_TIMES = 40
_GROUP = 0.74
"""Width of all cells at one rate, of the distance between two rates."""
_WITHIN = 0.6
"""Width of a cell's points, of its own place."""
_REACH = 1.6
"""So many times the longest time that was measured is shown; an interval that reaches further is cut off."""


@dataclass(frozen=True, slots=True)
class _Rate:
    """One rate and what each cell did at it."""

    share: float
    rate: float | None
    sides: dict[str, Side]

    @property
    def words(self) -> list[str]:
        return [quantity(self.share, "share"), *([quantity(self.rate, "1/s")] if self.rate else [])]


def same_load(study: LabStudy) -> list[Chart]:
    """One for each percentile; none without rated cells, or with too many cells to tell apart."""
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


def _rates(study: LabStudy) -> list[_Rate]:
    found: dict[float, _Rate] = {}
    for one in study.same_loads:
        rate = found.setdefault(one.share, _Rate(one.share, one.rate, {}))
        for side in (one.baseline, one.cell):
            rate.sides.setdefault(side.name, side)
    return [found[share] for share in sorted(found)]


def _chart(metric: str, names: list[str], shown: list[str], rates: Sequence[_Rate]) -> Chart:
    times = [side.times[metric] for rate in rates for side in rate.sides.values() if metric in side.times]
    highest = max(point.value_s for time in times for point in time.points)
    suffix, factor = scale("s", [highest])
    means, points = _rows(metric, shown, rates, factor, highest * _REACH)
    reach = [row[end] for row in means for end in ("low", "high")] + [row["value"] for row in points]
    kind, axis = base.value_scale(reach, _LOG_TIMES)
    y = {"field": "value", "type": "quantitative", "axis": {**axis, "title": None}, "scale": kind}
    behind = any(not row["kept"] for row in points)
    repeated = any(time.low_s is not None and time.high_s is not None for time in times)
    words = metric_words(metric)
    x = places("share of the baseline's peak", [rate.words for rate in rates])
    return Chart(
        f"same-load-{metric}",
        f"{words.capitalize()} at the same load",
        _alt(metric, shown, rates),
        base.specification(_layers(_looks(names, shown), x, y, behind), {"means": means, "points": points}, 260),
        _table(metric, shown, rates),
        suffix + (", logarithmic" if kind.get("type") == "log" else ""),
        (*(key for key in base.keys(names) if key.label in shown), *_marks(behind, repeated)),
    )


def _marks(behind: bool, repeated: bool) -> tuple[Key, ...]:
    found = [Key("95 % interval of the mean", "muted", "line")] if repeated else []
    found.append(Key("pale point: one block", "muted", "circle"))
    return (*found, *([Key("ring: fell behind the rate", "warn", "ring")] if behind else []))


def _rows(
    metric: str, shown: list[str], rates: Sequence[_Rate], factor: float, most_s: float
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Of the means and of the blocks; the cells of a rate stand beside each other, the blocks of a cell in order."""
    means: list[dict[str, Any]] = []
    points: list[dict[str, Any]] = []
    place = _GROUP / len(shown)
    for at, rate in enumerate(rates):
        for number, name in enumerate(shown):
            time = rate.sides[name].times.get(metric) if name in rate.sides else None
            if time is None:
                continue
            middle = at + (number - (len(shown) - 1) / 2) * place
            low, high = (time.centre_s if end is None else min(end, most_s) for end in (time.low_s, time.high_s))
            common = {"system": name, "at": " · ".join(rate.words)}
            means.append(
                {
                    **common,
                    "place": middle,
                    "value": time.centre_s / factor,
                    "low": low / factor,
                    "high": high / factor,
                    "said": _said(time),
                }
            )
            last = max(point.block for point in time.points) or 1
            points += [
                {
                    **common,
                    "place": middle + (point.block / last - 0.5) * place * _WITHIN,
                    "value": point.value_s / factor,
                    "said": quantity(point.value_s, "s"),
                    "block": point.block + 1,
                    "kept": point.kept,
                }
                for point in time.points
            ]
    return means, points


def _looks(names: list[str], shown: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Colour and shape that the cells have in other charts, of those shown alone."""
    found = []
    for encoding in (base.colour(names), base.shape(names)):
        known = dict(zip(names, encoding["scale"]["range"], strict=True))
        found.append({**encoding, "scale": {"domain": shown, "range": [known[name] for name in shown]}})
    return found[0], found[1]


def _layers(
    looks: tuple[dict[str, Any], dict[str, Any]], x: dict[str, Any], y: dict[str, Any], behind: bool
) -> list[dict[str, Any]]:
    colour, _ = looks
    common = [{"field": "system", "title": "cell"}, {"field": "at", "title": "rate"}]
    of_block = [*common, {"field": "block"}, {"field": "said", "title": "value"}]
    of_mean = [*common, {"field": "said", "title": "mean of the blocks"}]
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
    shown = whiskered("means", x, y, looks, of_mean, stroke="@paper", strokeWidth=1)
    return [joined("means", x, y, colour, 0.5), point, *([doubtful] if behind else []), *shown]


def _said(time: Time) -> str:
    """`2.1 ms (1.9 to 2.3 ms)`."""
    centre = quantity(time.centre_s, "s")
    if time.low_s is None or time.high_s is None:
        return centre
    return f"{centre} ({between(time.low_s, time.high_s, 's')})"


def _alt(metric: str, shown: list[str], rates: Sequence[_Rate]) -> str:
    words = []
    for name in shown:
        own = [
            f"{_said(time)} at {' or '.join(rate.words)}"
            for rate in rates
            if name in rate.sides and (time := rate.sides[name].times.get(metric))
        ]
        if own:
            words.append(f"{name}: {', '.join(own)}")
    return f"{metric_words(metric).capitalize()} at shares of the baseline's peak. {'; '.join(words)}."


def _table(metric: str, shown: list[str], rates: Sequence[_Rate]) -> Table:
    rows = []
    for rate in rates:
        times = [rate.sides[name].times.get(metric) if name in rate.sides else None for name in shown]
        rows.append((" · ".join(rate.words), *(_said(time) if time else "" for time in times)))
    return Table(("at", *shown), tuple(rows), numbers=True)
