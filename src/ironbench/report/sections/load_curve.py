"""Loads that followed a curve. Charts show the requested load, the completed work and the response times over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ironbench.report.cell import ABSENT, TableCell, cell_text, count
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Key, Table
from ironbench.report.charts.timelines import DASHES
from ironbench.report.numbers import quantity, scale
from ironbench.report.page import Section
from ironbench.study.study import Study
from ironbench.study.timelines import LoadCourse
from ironbench.words import counted

PLACE = 450
_LEAD = "A typical trial of each system over time: the requested load, and the work that the system completed."
_ASKED = {"rate": "requested rate", "clients": "active clients"}


def sections(study: Study) -> Iterator[Section]:
    courses = [(part.name, one) for part in study.parts if (one := part.course) is not None]
    charts = tuple(_chart(place, name, one, study.counts[1]) for place, (name, one) in enumerate(courses))
    sentences = tuple(sentence for name, one in courses if (sentence := _knee(name, one, study.counts[1])))
    yield Section("load-curve", "Load over time", _LEAD, charts, sentences=sentences, printed_at_end=True)


def _load_text(one: LoadCourse, value: float) -> str:
    return cell_text(_asked_cell(one, value)) if one.curve.of == "rate" else counted(round(value), "client")


def _asked_cell(one: LoadCourse, value: float) -> TableCell:
    return TableCell(round(value), "rate") if one.curve.of == "rate" else count(round(value))


def _knee(name: str, one: LoadCourse, counts: str) -> str:
    if not one.curve.is_ramp:
        return ""
    last = _load_text(one, one.curve.most)
    if one.knee is None:
        way = "sustained the requested rate" if one.curve.of == "rate" else f"completed more {counts} with more clients"
        return f"{name} {way} up to the end of the ramp ({last}), so its knee is at a higher load."
    knee = float(f"{one.knee:.2g}")  # rounded to two digits, because it is an estimate
    measure = f"--{one.curve.of} auto:{max(1, round(knee / 2))}-{round(knee * 2)}"
    return (
        f"{name} has its knee at about {_load_text(one, knee)}. This is an estimate from a ramp, during which queues "
        f"and caches lag behind the load; to measure the knee with steady loads, use `{measure}`."
    )


def _chart(place: int, name: str, one: LoadCourse, counts: str) -> Chart:
    """Draws the requested load and the completed work on the left axis, and the response time on the right axis."""
    suffix, factor = scale("s", [value for _, value in one.p99_s])
    keys = (
        Key(_ASKED[one.curve.of], "muted", "dash"),
        Key("completed per second", "s0", "line"),
        Key(f"99th-percentile response time, {suffix} (right axis)", "s1", "dot"),
    )
    asked = [_row(m.t_s, keys[0], _asked_cell(one, m.asked)) for m in one.moments]
    done = [_row(m.t_s, keys[1], TableCell(m.done, "1/s")) for m in one.moments]
    late = [_row(t_s, keys[2], TableCell(value, "s"), factor) for t_s, value in one.p99_s]
    left = {"tickCount": 5, "format": ",~f", "title": None}
    right = {"tickCount": 5, "format": ",~f", "title": f"99th percentile, {suffix}", "orient": "right", "grid": False}
    # A requested rate shares the axis of the completed work. A number of clients has a separate scale without an axis.
    # Readers find the numbers in the table.
    if one.curve.of == "rate":
        data, layers = {"load": asked + done}, [_layer("load", keys[:2], left)]
    else:
        data, layers = (
            {"asked": asked, "load": done},
            [_layer("asked", keys[:1], None), _layer("load", keys[1:2], left)],
        )
    specification = base.specification([*layers, _layer("late", keys[2:], right)], data | {"late": late}, 240)
    specification["resolve"] = {"scale": {"y": "independent", "color": "independent", "strokeDash": "independent"}}
    most = max(moment.done for moment in one.moments)
    slow = (
        f"; 99th-percentile response time up to {quantity(max(value for _, value in one.p99_s), 's')}"
        if one.p99_s
        else ""
    )
    return Chart(
        f"load-curve-{place}",
        f"{name}: {one.curve.text}",
        f"{name}, {one.curve.text}: requested up to {_load_text(one, one.curve.most)}, completed up to "
        f"{quantity(most, '1/s')}{slow}.",
        specification,
        _table(one),
        f"{counts}/s",
        keys,
        wide=True,
    )


def _row(t_s: float, key: Key, cell: TableCell, factor: float = 1.0) -> dict[str, Any]:
    return {"t": t_s, "line": key.label, **base.figures(cell, factor)}


def _layer(data: str, keys: Sequence[Key], axis: dict[str, Any] | None) -> dict[str, Any]:
    names = [key.label for key in keys]
    return {
        "data": {"name": data},
        "mark": {"type": "line", "strokeWidth": 1.7},
        "encoding": {
            "x": {
                "field": "t",
                "type": "quantitative",
                "axis": {"title": "seconds", "format": "d"},
                "scale": {"nice": False},
            },
            "y": {"field": "value", "type": "quantitative", "scale": {"zero": True}, "axis": axis},
            "color": _by_line(names, [f"@{key.colour}" for key in keys]),
            "strokeDash": _by_line(names, [DASHES[key.mark] for key in keys]),
            "tooltip": [
                {"field": "line", "title": "series"},
                {"field": "t", "title": "second"},
                {"field": "text", "title": "value"},
            ],
        },
    }


def _by_line(names: list[str], styles: list[Any]) -> dict[str, Any]:
    return {"field": "line", "type": "nominal", "scale": {"domain": names, "range": styles}}


def _table(one: LoadCourse) -> Table:
    """Returns rows for at most ten equally spaced points in time."""
    slow = dict(one.p99_s)
    step = max(1, -(-len(one.moments) // 10))
    rows = tuple(
        (
            TableCell(moment.t_s, "seconds", bare=True),
            _asked_cell(one, moment.asked),
            TableCell(moment.done, "1/s"),
            TableCell(slow[moment.t_s], "s") if moment.t_s in slow else ABSENT,
        )
        for moment in one.moments[::step]
    )
    return Table(("second", _ASKED[one.curve.of], "completed", "99th percentile"), rows)
