"""The workers that drove the trials: what each did, and whether one of them was the limit."""

from __future__ import annotations

from collections.abc import Iterator

from ironbench.analyse.study import Study
from ironbench.analyse.workers import Share, Workers
from ironbench.report.charts.base import Table
from ironbench.report.numbers import quantity
from ironbench.report.section import Section
from ironbench.units import span
from ironbench.words import counted, grouped, in_percent

PLACE = 1710
_LEAD = (
    "Each worker had its share of the clients, or of the rate, and its own clock; their histograms of times were "
    "merged. Throughput is the mean of the trials, every other figure the highest of them."
)


def sections(study: Study) -> Iterator[Section]:
    tables = tuple((one.name, _table(one)) for one in study.workers)
    yield Section("workers", "Who drove it", _LEAD, tables=tables, sentences=tuple(map(sentence, study.workers)))


def sentence(one: Workers) -> str:
    hosts = len({share.host for share in one.shares})
    many = f"{counted(len(one.shares), 'worker')} on {counted(hosts, 'machine')}"
    return f"{one.name}: {many} began each trial within {span(one.start_spread_s)}."


def _table(one: Workers) -> Table:
    head = (
        "worker",
        "machine",
        "clients",
        "throughput",
        "p99",
        "threads busy",
        "machine busy",
        "start",
        "clock",
    )
    rows = tuple(
        (
            str(share.number),
            share.host,
            grouped(share.clients),
            quantity(share.throughput, "1/s"),
            "–" if share.p99_s is None else quantity(share.p99_s, "s"),
            in_percent(share.threads_cpu_share),
            "–" if share.machine_cpu_share is None else in_percent(share.machine_cpu_share),
            f"+{span(share.start_s)}",
            _clock(share),
        )
        for share in one.shares
    )
    return Table(head, rows)


def _clock(share: Share) -> str:
    """How far it was from ours, and how well that is known."""
    if not share.clock_error_s:
        return "same clock"
    away = span(abs(share.clock_offset_s))
    return f"{away} {'ahead' if share.clock_offset_s > 0 else 'behind'}, ± {span(share.clock_error_s)}"
