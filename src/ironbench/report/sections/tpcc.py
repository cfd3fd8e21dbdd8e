"""Results of the TPC-C-derived workload: New-Orders per minute, the transaction mix, and response times with their
limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ironbench.report import wording
from ironbench.report.cell import UNKNOWN, Content, Row, TableCell, centre_with_range
from ironbench.report.charts.base import Table
from ironbench.report.overview import overview
from ironbench.report.page import Section
from ironbench.study.study import Study
from ironbench.study.summarise import Summary
from ironbench.workloads.response_limits import P90
from ironbench.workloads.tpcc.figures import (
    EFFICIENCY,
    LAG,
    LEAST_SHARES,
    LEFT,
    NOPM,
    RESPONSE_TIMES,
    ROLLED_BACK,
    SKIPPED,
    TPM,
    limits_s,
    of_terminals,
)
from ironbench.workloads.tpcc.transactions import DELIVERY, ISOLATION, REQUEST

PLACE = 111
_LEAD = (
    "The score is NOPM, the number of committed New-Order transactions per minute. For all types of transactions "
    "except New-Order, the standard prescribes a minimum share. For each type, the standard prescribes a limit "
    "for the 90th percentile of response times. If there are several trials, ranges are from the lowest to the highest "
    "trial, and percentiles are computed from the transactions of all trials together."
)
_FACTS = {
    "New-Orders per minute (NOPM)": NOPM,
    "transactions per minute": TPM,
    "efficiency (of 12.86 NOPM per warehouse)": EFFICIENCY,
    "rolled-back New-Orders": ROLLED_BACK,
    "districts without an undelivered order": SKIPPED,
    "waiting time of queued deliveries, 99th percentile": f"{LAG}_p99_s",
    "queued deliveries at the end": LEFT,
    "retries per trial": "retries",
    "failed transactions per trial": "failed",
}


def sections(study: Study) -> Iterator[Section]:
    systems = [one for one in study.main if NOPM in one.metrics]
    if not systems:
        return
    tables = [("", overview(systems, _FACTS))]
    for one in systems:
        tables += [(one.name, _mix(one.metrics)), (f"{one.name}, response times", _response_times(one.metrics))]
    title = f"TPC-C-derived workload, {wording.text(study.place)}" if study.parts else "TPC-C-derived workload"
    yield Section("tpcc", title, _LEAD, tables=tuple(tables), printed_at_end=True)


def _mix(metrics: Mapping[str, Summary]) -> Table:
    rates = _rates(metrics)
    terminals = of_terminals({name: rate.centre for name, rate in rates.items()})
    whole = sum(terminals.values())
    rows: list[Row] = []
    for name, rate in rates.items():
        # The mix counts the request of a deferred delivery, and not its later execution.
        type_ = DELIVERY if name == REQUEST else "" if name == DELIVERY and REQUEST in rates else name
        rows.append(
            (
                name,
                _per_minute(rate),
                TableCell(rate.centre / whole, "share") if type_ and whole else "",
                TableCell(LEAST_SHARES[type_], "share") if type_ in LEAST_SHARES else "",
            )
        )
    return Table(("transaction", "per minute", "share", "at least"), tuple(rows))


def _response_times(metrics: Mapping[str, Summary]) -> Table:
    """Returns a row for each type of transaction, with the limit beside the 90th percentile."""
    limits = limits_s(_rates(metrics))
    rows: list[Row] = []
    for name in _rates(metrics):
        times = [metrics.get(f"{metric}{{script={name}}}") for metric in RESPONSE_TIMES]
        mean, p50, p90, p95, p99 = (centre_with_range(time, "s") for time in times)
        limit_s = limits[name]
        result = _result(times[RESPONSE_TIMES.index(P90)], limit_s)
        rows.append((name, mean, p50, p90, TableCell(limit_s, "s"), result, p95, p99))
    return Table(("transaction", "mean", "p50", "p90", "limit", "result", "p95", "p99"), tuple(rows))


def _rates(metrics: Mapping[str, Summary]) -> dict[str, Summary]:
    """Returns the throughput of each script in transactions per second."""
    return {name: metrics[tag] for name in (*ISOLATION, REQUEST) if (tag := f"throughput{{script={name}}}") in metrics}


def _per_minute(rate: Summary) -> TableCell:
    bounds = (60.0 * rate.low, 60.0 * rate.high) if rate.n > 1 else (None, None)
    return TableCell(60.0 * rate.centre, "1/min", *bounds)


def _result(p90: Summary | None, limit_s: float) -> Content:
    if p90 is None:
        return UNKNOWN
    return "over the limit" if p90.centre > limit_s else "pass"
