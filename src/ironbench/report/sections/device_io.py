"""I/Os by latency and by size: a line per system and role, the share of its I/Os in every bucket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ironbench.analyse.device_io import Spread
from ironbench.analyse.study import Study
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Depth, Key, Table
from ironbench.report.charts.timelines import DASHES, strokes_of
from ironbench.report.numbers import count, quantity
from ironbench.report.section import Section
from ironbench.words import THIN

PLACE = 2000


def sections(study: Study) -> Iterator[Section]:
    lead = f"Every I/O of the emulated devices during the trials {study.place}, by what it belonged to."
    yield Section("device-io", "I/Os by latency and by size", lead, tuple(device_io(study)), depth=Depth.DOCUMENT)


_TITLES = {
    "device_read_latency_s": "How long reads took",
    "device_write_latency_s": "How long writes took",
    "device_flush_latency_s": "How long flushes took",
    "device_read_size_bytes": "How large reads were",
    "device_write_size_bytes": "How large writes were",
}
_QUANTILES = (0.5, 0.99)
_MICRO, _KIB = 1e-6, 1024.0


def device_io(study: Study) -> list[Chart]:
    """A chart per quantity that was counted."""
    found = []
    for metric in _TITLES:
        spreads = [(part.name, one) for part in study.parts for one in part.device_io if one.metric == metric]
        if spreads:
            found.append(_chart(study, metric, spreads))
    return found


def _chart(study: Study, metric: str, spreads: list[tuple[str, Spread]]) -> Chart:
    names = [part.name for part in study.parts]
    dashes = strokes_of([one.part for _, one in spreads])
    rows = [row for name, one in spreads for row in _rows(name, one)]
    layer = {
        "data": {"name": "io"},
        "mark": {"type": "line", "interpolate": "step-before", "strokeWidth": 1.7},
        "encoding": _encoding(names, metric, dashes, [row["edge"] for row in rows]),
    }
    roles = tuple(Key(role, "muted", stroke) for role, stroke in dashes.items()) if len(dashes) > 1 else ()
    return Chart(
        f"io-{metric}",
        _TITLES[metric],
        _alt(metric, spreads),
        base.specification([layer], {"io": rows}, 190),
        _table(spreads),
        "% of them" + (f", {next(iter(dashes))} device" if len(dashes) == 1 else ""),
        (*base.keys(names, "line"), *roles),
    )


def _rows(name: str, one: Spread) -> list[dict[str, Any]]:
    unit = _MICRO if _timed(one) else _KIB
    # A step needs somewhere to begin and to end.
    outer = [(one.points[0][0] / one.step, 0.0), *one.points, (one.points[-1][0] * one.step, 0.0)]
    return [
        {"system": name, "role": one.part, "edge": edge / unit, "share": share}
        | {"within": f"up to {_said(one, edge)}", "said": quantity(share, "share")}
        for edge, share in outer
    ]


def _encoding(names: list[str], metric: str, dashes: dict[str, str], edges: list[float]) -> dict[str, Any]:
    timed = metric.endswith("latency_s")
    decimal = base.decimal_ticks(min(edges), max(edges)) if timed else []
    ticks = {"values": decimal} if len(decimal) > 1 else {"labelOverlap": "greedy"}
    return {
        "x": {
            "field": "edge",
            "type": "quantitative",
            "scale": {"type": "log", "base": 10 if timed else 2, "nice": False},
            "axis": {"title": "microseconds" if timed else "KiB", "format": ",~f", **ticks},
        },
        "y": {
            "field": "share",
            "type": "quantitative",
            "scale": {"zero": True},
            "axis": {"title": None, "format": ".0%", "tickCount": 5},
        },
        "color": base.colour(names),
        "strokeDash": {
            "field": "role",
            "type": "nominal",
            "scale": {"domain": list(dashes), "range": [DASHES[stroke] for stroke in dashes.values()]},
        },
        "tooltip": [{"field": name} for name in ("system", "role", "within")] + [{"field": "said", "title": "share"}],
    }


def _timed(one: Spread) -> bool:
    return one.metric.endswith("latency_s")


def _said(one: Spread, edge: float) -> str:
    return quantity(edge, "s") if _timed(one) else f"{edge / _KIB:g}{THIN}KiB"


def _alt(metric: str, spreads: list[tuple[str, Spread]]) -> str:
    words = [
        f"{name}, {one.part}: half of them up to {_said(one, one.quantile(0.5))}, "
        f"99 % up to {_said(one, one.quantile(0.99))}"
        for name, one in spreads
    ]
    return f"{_TITLES[metric]}. {'; '.join(words)}."


def _table(spreads: list[tuple[str, Spread]]) -> Table:
    rows = tuple(
        (
            f"{name}, {one.part}",
            count(one.count),
            *(_said(one, one.quantile(share)) for share in _QUANTILES),
            _said(one, one.points[-1][0]),
        )
        for name, one in spreads
    )
    return Table(("", "I/Os", "half at most", "99 % at most", "all at most"), rows, numbers=True)
