"""Results of each worker over several trials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from ironbench.model.record import Record
from ironbench.model.workers import WorkerPart
from ironbench.study.archive import Archive


@dataclass(frozen=True, slots=True)
class WorkerShare:
    """Results of one worker over all trials."""

    number: int
    host: str
    clients: int
    throughput: float
    """Mean throughput over the trials."""
    p99_s: float | None
    """Highest 99th percentile of all trials. The value is a maximum, because a mean of percentiles is not a percentile.
    The following fields are also maxima over the trials."""
    threads_cpu_share: float
    machine_cpu_share: float | None
    start_s: float
    clock_error_s: float
    clock_offset_s: float
    """The clock offset that was furthest from zero in any trial."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Workers of one system or configuration."""

    name: str
    trials: int
    shares: tuple[WorkerShare, ...]
    start_spread_s: float
    """Largest delay between the starts of two workers in any trial."""


def by_worker(groups: Iterable[tuple[str, Sequence[Record]]], archive: Archive) -> tuple[Workers, ...]:
    """Returns the results of each worker. `groups`: name and trials. Groups without workers are left out."""
    workers = []
    for name, records in groups:
        trials = [one for record in records if (one := archive.workers(record.id))]
        if trials:
            numbers = sorted({worker.number for one in trials for worker in one})
            by_number = [[worker for one in trials for worker in one if worker.number == number] for number in numbers]
            spread_s = max(worker.start_s for one in trials for worker in one)
            workers.append(Workers(name, len(trials), tuple(map(_share, by_number)), spread_s))
    return tuple(workers)


def _share(each: Sequence[WorkerPart]) -> WorkerShare:
    last = each[-1]
    machines = [one.machine_cpu_share for one in each if one.machine_cpu_share is not None]
    return WorkerShare(
        number=last.number,
        host=last.host,
        clients=last.clients,
        throughput=fmean(one.transactions / one.elapsed_s if one.elapsed_s else 0.0 for one in each),
        p99_s=max((one.response_time_p99_s for one in each if one.response_time_p99_s is not None), default=None),
        threads_cpu_share=max(one.threads_cpu_share for one in each),
        machine_cpu_share=max(machines, default=None),
        start_s=max(one.start_s for one in each),
        clock_error_s=max(one.clock_error_s for one in each),
        clock_offset_s=max((one.clock_offset_s for one in each), key=abs),
    )
