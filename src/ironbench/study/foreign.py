"""Determines what the output of another program lacks, and which trials are shown beside a foreign record."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.model.foreign import ForeignRecord
from ironbench.model.record import Record
from ironbench.study.curve import metrics_of
from ironbench.study.subjects import entering

_THROUGHPUT = {"throughput", "new_orders_per_min", "transactions_per_min"}


def gaps(record: ForeignRecord) -> tuple[str, ...]:
    """Returns codes of the facts that this foreign record lacks although every record of ironbench contains them. The
    most important fact is first."""
    figures = [record.metrics, *(part.metrics for part in record.parts)]
    times = {name for one in figures for name in one if name.startswith("response_time")}
    missing = {
        "machine": True,
        "engine": True,
        "repeats": True,
        "work": "workload" not in record.facts,
        "data": "scale" not in record.facts,
        "clients": record.clients is None,
        "throughput": not _THROUGHPUT & record.metrics.keys(),
        "duration": record.elapsed_s is None,
        "warmup": "warmup" not in record.facts,
        "failures": "failed" not in record.metrics,
        "response_times": not times,
        "distribution": bool(times) and "response_time_p99_s" not in times,
        "seconds": not record.seconds,
        "started": not record.started_at,
        "checks": True,
    }
    return tuple(name for name, is_missing in missing.items() if is_missing)


def beside(records: Sequence[Record], clients: int | None) -> tuple[Record, ...]:
    """Returns the trials to show beside a foreign record. If there are trials with the same number of clients, returns
    these. Otherwise, returns the trials with the number of clients that has the highest median throughput."""
    usable = entering(records)
    alike = tuple(record for record in usable if record.cell.load.clients == clients)
    by_clients: dict[int, list[Record]] = {}
    for record in usable:
        by_clients.setdefault(record.cell.load.clients, []).append(record)

    def throughput(clients: int) -> float:
        summary = metrics_of(by_clients[clients], ["throughput"]).get("throughput")
        return summary.centre if summary else 0.0

    return alike or (tuple(by_clients[max(by_clients, key=throughput)]) if by_clients else ())
