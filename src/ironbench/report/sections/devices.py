"""I/O of devices: the mean latency for each role, distributions of I/O latency and size, and the CPU cost of a read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ironbench.report import wording
from ironbench.report.cell import ABSENT, Missing, Row, TableCell, cell_text, centre, count, spread, with_range
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Depth, Key, Table
from ironbench.report.charts.grouped import Bar, Shown, grouped_bars
from ironbench.report.charts.timelines import DASHES, devices, strokes_of, typical_trials
from ironbench.report.numbers import quantity
from ironbench.report.page import Section
from ironbench.report.waits import device_role
from ironbench.report.wording.terms import label
from ironbench.study.device_io import Distribution
from ironbench.study.study import Study
from ironbench.study.summarise import Summary

PLACE = 1900


def sections(study: Study) -> Iterator[Section]:
    title, lead = ("I/O of emulated devices", "") if study.lab else ("Devices", typical_trials(study))
    seconds = (replace(chart, depth=Depth.PAGE) for chart in devices(study))
    yield Section("devices", title, lead, (*seconds, *role_latency(study)))
    lead = (
        f"The table shows all I/O of the emulated devices during the trials {wording.text(study.place)}, by role "
        "of the device."
    )
    yield Section(
        "device-io", "Distribution of I/O latency and size", lead, tuple(device_io(study)), depth=Depth.DOCUMENT
    )
    yield Section("read-cost", "CPU cost of a read", _LEAD_READS, tables=(("", read_cost_table(study)),))


def role_latency(study: Study) -> list[Chart]:
    """Draws the mean I/O latency of each role as bars. Returns an empty list if no role has its own emulated device."""
    return grouped_bars(
        Shown(
            "role-latency",
            "I/O latency by role",
            "s",
            (
                "The mean latencies are over the measured window and include time in the kernel's queue; the 99th "
                "percentiles do not include it."
            ),
            _role_table(study),
            wide=True,
        ),
        [
            Bar(device_role(one.what), label(study.configuration(one.name)), one.mean_s)
            for one in study.details.role_latencies
        ],
    )


def _role_table(study: Study) -> Table:
    rows = tuple(
        (
            f"{device_role(one.what)}, {label(study.configuration(one.name))}",
            centre(one.mean_s, "s"),
            spread(one.mean_s, "s"),
            centre(one.p99_s, "s"),
            centre(one.per_s, "1/s"),
            centre(one.size_bytes, "bytes"),
        )
        for one in study.details.role_latencies
    )
    head = ("I/O", "mean incl. kernel queue", "range", "p99 excl. kernel queue", "IOPS", "mean size")
    return Table(head, rows)


_TITLES = {
    "device_read_latency_s": "Read latency",
    "device_write_latency_s": "Write latency",
    "device_flush_latency_s": "Flush latency",
    "device_read_size_bytes": "Read size",
    "device_write_size_bytes": "Write size",
}
_QUANTILES = (0.5, 0.99)
_MICRO, _KIB = 1e-6, 1024.0


def device_io(study: Study) -> list[Chart]:
    """Returns a chart for each metric whose distribution was measured, such as the read latency."""
    charts = []
    for metric in _TITLES:
        distributions = [(part.name, one) for part in study.parts for one in part.device_io if one.metric == metric]
        if distributions:
            charts.append(_chart(study, metric, distributions))
    return charts


def _chart(study: Study, metric: str, distributions: list[tuple[str, Distribution]]) -> Chart:
    names = [part.name for part in study.parts]
    dashes = strokes_of([one.part for _, one in distributions])
    rows = [row for name, one in distributions for row in _rows(name, one)]
    layer = {
        "data": {"name": "io"},
        "mark": {"type": "line", "interpolate": "step-before", "strokeWidth": 1.7},
        "encoding": _encoding(names, metric, dashes, [row["edge"] for row in rows]),
    }
    table = _io_table(distributions)
    roles = tuple(Key(role, "muted", stroke) for role, stroke in dashes.items()) if len(dashes) > 1 else ()
    return Chart(
        f"io-{metric}",
        _TITLES[metric],
        f"{_TITLES[metric]}. {base.each_row(table)}.",
        base.specification([layer], {"io": rows}, 190),
        table,
        "% of I/Os" + (f", {next(iter(dashes))} device" if len(dashes) == 1 else ""),
        (*base.keys(names, "line"), *roles),
    )


def _rows(name: str, one: Distribution) -> list[dict[str, Any]]:
    unit = _MICRO if _timed(one) else _KIB
    # The stepped line needs a point with share 0 at each end, so that it starts and ends at the axis.
    outer = [(one.points[0][0] / one.step, 0.0), *one.points, (one.points[-1][0] * one.step, 0.0)]
    return [
        {"system": name, "role": device_role(one.part), "edge": edge / unit, "share": share}
        | {"within": f"up to {cell_text(_edge(one, edge))}", "text": quantity(share, "share")}
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
        "tooltip": [{"field": name} for name in ("system", "role", "within")] + [{"field": "text", "title": "share"}],
    }


def _timed(one: Distribution) -> bool:
    return one.metric.endswith("latency_s")


def _edge(one: Distribution, edge: float) -> TableCell:
    return TableCell(edge, "s" if _timed(one) else "KiB")


def _io_table(distributions: list[tuple[str, Distribution]]) -> Table:
    rows: tuple[Row, ...] = tuple(
        (
            f"{name}, {device_role(one.part)}",
            count(one.count),
            *(_edge(one, one.quantile(share)) for share in _QUANTILES),
            _edge(one, one.points[-1][0]),
        )
        for name, one in distributions
    )
    return Table(("", "I/Os", "median", "p99", "maximum"), rows)


_LEAD_READS = (
    "To measure the CPU time per device read, the same work runs once with its data on the device and once with "
    "all data cached. The difference in CPU time is divided by the number of reads. Engine CPU is the user and "
    "system time of the engine's processes. Total CPU also includes kernel threads, interrupts and other "
    "programs."
)


def read_cost_table(study: Study) -> Table:
    rows = tuple(
        (
            " vs. ".join(label(study.configuration(name)) for name in (one.name, one.cached)),
            count(one.reads.centre),
            centre(one.size_bytes, "bytes"),
            _cost(one.engine_s),
            _cost(one.whole_s),
            TableCell(one.engine_s.centre * 1e9 / one.size_bytes.centre, "s") if one.size_bytes.centre > 0 else ABSENT,
        )
        for one in study.details.read_costs
    )
    head = (
        "from the device vs. cached",
        "reads",
        "mean size",
        "engine CPU per read",
        "total CPU per read",
        "engine CPU per GB",
    )
    return Table(head, rows)


def _cost(cost: Summary | None) -> TableCell | Missing:
    return ABSENT if cost is None else with_range(cost, "s")
