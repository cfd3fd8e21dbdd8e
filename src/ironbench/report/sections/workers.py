"""The workers that ran the load. A table shows how much work each worker did, and whether a worker was the
bottleneck."""

from __future__ import annotations

from collections.abc import Iterator

from ironbench.report.cell import ABSENT, Missing, TableCell, count
from ironbench.report.charts.base import Table
from ironbench.report.page import Section
from ironbench.report.wording.terms import label
from ironbench.study.study import Study
from ironbench.study.workers import Workers, WorkerShare
from ironbench.units import span
from ironbench.words import counted

PLACE = 1710
_LEAD = (
    "Each worker ran its share of the clients or of the target rate, timed by the worker's own clock. The "
    "latency histograms of all workers were merged. Throughput is the mean of the trials; every other value is the "
    "highest of all trials."
)


def sections(study: Study) -> Iterator[Section]:
    named = [(label(study.configuration(one.name)), one) for one in study.details.workers]
    tables = tuple((name, _table(one)) for name, one in named)
    yield Section(
        "workers", "Workers", _LEAD, tables=tables, sentences=tuple(sentence(name, one) for name, one in named)
    )


def sentence(name: str, one: Workers) -> str:
    hosts = len({share.host for share in one.shares})
    many = f"{counted(len(one.shares), 'worker')} on {counted(hosts, 'machine')}"
    return f"{name}: {many} started each trial within {span(one.start_spread_s)} of each other."


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
        "clock offset",
    )
    rows = tuple(
        (
            str(share.number),
            share.host,
            count(share.clients),
            TableCell(share.throughput, "1/s"),
            ABSENT if share.p99_s is None else TableCell(share.p99_s, "s"),
            TableCell(share.threads_cpu_share, "share"),
            ABSENT if share.machine_cpu_share is None else TableCell(share.machine_cpu_share, "share"),
            TableCell(share.start_s, "s", signed=True),
            _clock(share),
        )
        for share in one.shares
    )
    return Table(head, rows)


def _clock(share: WorkerShare) -> TableCell | Missing:
    """Returns the cell with the difference between the worker's clock and the local clock, and its uncertainty. A
    positive difference means that the worker's clock is ahead."""
    if not share.clock_error_s:
        return Missing("same clock")
    offset, error = share.clock_offset_s, share.clock_error_s
    return TableCell(offset, "s", offset - error, offset + error, signed=True)
