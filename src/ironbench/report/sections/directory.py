"""Counters of a directory server: operations of each type, busy threads, and operations that wait for a thread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ironbench.catalogue import part_of
from ironbench.report import wording
from ironbench.report.cell import ABSENT, Missing, TableCell, centre
from ironbench.report.charts.base import Table
from ironbench.report.page import Section
from ironbench.study.study import Study
from ironbench.study.summarise import Summary

PLACE = 1260
_OPERATIONS = "directory_operations_per_s"
_THREADS = {"directory_threads_active": "busy threads", "directory_operations_waiting": "waiting operations"}
_LEAD = (
    "The values come from the server's monitor: completed operations per second by kind, the average number of "
    "busy threads, and the average number of waiting operations. The operations include those of ironbench's "
    "checks and observers, and the second bind of clients that bind as users."
)


def sections(study: Study) -> Iterator[Section]:
    counting = [(one.name, one.metrics) for one in study.main if any(map(_is_shown, one.metrics))]
    title = f"Directory server counters, {wording.text(study.place)}" if study.parts else "Directory server counters"
    table = _table(counting)
    yield Section("directory", title, _LEAD, tables=(("", table),) if table else ())


def _is_shown(metric: str) -> bool:
    return metric.startswith(f"{_OPERATIONS}{{") or metric in _THREADS


def _table(counting: Sequence[tuple[str, Mapping[str, Summary]]]) -> Table | None:
    if not counting:
        return None
    shown = dict.fromkeys(metric for _, metrics in counting for metric in metrics if metric.startswith(_OPERATIONS))
    names = {metric: part_of(metric).removeprefix("operation=") for metric in shown} | _THREADS
    rows = tuple(
        (head, *(_value(metric, metrics) for _, metrics in counting))
        for metric, head in names.items()
        if any(metric in metrics for _, metrics in counting)
    )
    return Table(("", *(name for name, _ in counting)), rows)


def _value(metric: str, metrics: Mapping[str, Summary]) -> TableCell | Missing:
    if metric not in metrics:
        return ABSENT
    return centre(metrics[metric], "1/s" if metric.startswith(_OPERATIONS) else "1")
