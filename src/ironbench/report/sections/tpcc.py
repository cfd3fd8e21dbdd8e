"""Results of the TPC-C-derived workload: New-Orders per minute, the transaction mix, and response times with their
limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ironbench.report import wording
from ironbench.report.cell import UNKNOWN, Content, Row, TableCell, centre
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
    "for the 90th percentile of response times."
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
    tables += [(one.name, _mix(one.metrics)) for one in systems]
    title = f"TPC-C-derived workload, {wording.text(study.place)}" if study.parts else "TPC-C-derived workload"
    yield Section("tpcc", title, _LEAD, tables=tuple(tables), printed_at_end=True)


def _mix(metrics: Mapping[str, Summary]) -> Table:
    rates = {
        name: metrics[tag].centre
        for name in (*ISOLATION, REQUEST)
        if (tag := f"throughput{{script={name}}}") in metrics
    }
    terminals, limits = of_terminals(rates), limits_s(rates)
    whole = sum(terminals.values())
    rows: list[Row] = []
    for name, rate in rates.items():
        slowest = metrics.get(f"{P90}{{script={name}}}")
        # The mix counts the request of a deferred delivery, and not its later execution.
        type_ = DELIVERY if name == REQUEST else "" if name == DELIVERY and REQUEST in rates else name
        rows.append(
            (
                name,
                TableCell(60.0 * rate, "1/min"),
                TableCell(rate / whole, "share") if type_ and whole else "",
                TableCell(LEAST_SHARES[type_], "share") if type_ in LEAST_SHARES else "",
                centre(slowest, "s"),
                TableCell(limits[name], "s"),
                _result(slowest, limits[name]),
            )
        )
    return Table(("transaction", "per minute", "share", "at least", "p90", "limit", "result"), tuple(rows))


def _result(slowest: Summary | None, limit_s: float) -> Content:
    if slowest is None:
        return UNKNOWN
    return "over the limit" if slowest.centre > limit_s else "pass"
