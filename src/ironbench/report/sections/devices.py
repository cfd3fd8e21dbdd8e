"""Time of an I/O by role: reads of data, writes of temporary files, flushes of the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ironbench.analyse.role_latency import RoleLatency
from ironbench.analyse.study import Study
from ironbench.report.charts.base import Chart, Depth, Table
from ironbench.report.charts.grouped import Bar, Shown, grouped
from ironbench.report.charts.timelines import devices, typical_trials
from ironbench.report.numbers import measured, span
from ironbench.report.section import Section

PLACE = 1900


def sections(study: Study) -> Iterator[Section]:
    title, lead = ("I/O of emulated devices", "") if study.lab else ("Devices", typical_trials(study))
    seconds = (replace(chart, depth=Depth.PAGE) for chart in devices(study))
    yield Section("devices", title, lead, (*seconds, *role_latency(study.role_latencies)))


def role_latency(found: Sequence[RoleLatency]) -> list[Chart]:
    """Bars of the means; none where no role has an emulated device of its own."""
    return grouped(
        Shown(
            "role-latency",
            "Time of an I/O by role",
            "s",
            "Mean over the measured time, waiting in the kernel's queue for the device included; 99 % without that.",
            _table(found),
            wide=True,
        ),
        [Bar(one.what, one.name, one.mean_s) for one in found],
    )


def _table(found: Sequence[RoleLatency]) -> Table:
    rows = tuple(
        (
            f"{one.what}, {one.name}",
            measured(one.mean_s, "s"),
            span(one.mean_s, "s"),
            measured(one.p99_s, "s"),
            measured(one.per_s, "1/s"),
            measured(one.size_bytes, "bytes"),
        )
        for one in found
    )
    return Table(("I/O", "mean", "range", "99 %", "I/Os", "mean size"), rows, numbers=True)
