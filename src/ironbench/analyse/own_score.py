"""What records say a system does where no target asks: the workload's own score at the peak."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench import workloads
from ironbench.analyse.curve import Peak, curve
from ironbench.analyse.subjects import subjects
from ironbench.model.record import Record, Status
from ironbench.words import counted


def score_of(workload: str, peaks: Sequence[Peak]) -> str:
    """The metric: the first of the workload's scores that a peak has; empty: none has one."""
    known = workloads.find(workload)
    names = known.scores if known else ("throughput",)
    return next((name for name in names if any(name in peak.metrics for peak in peaks)), "")


def highest(records: Sequence[Record]) -> Peak | None:
    """Of the peaks of one system under its shapes of load, the one with the highest throughput."""
    found = [peak for subject in subjects(records) if (peak := curve(subject).peak) is not None]
    return max(found, key=lambda peak: peak.throughput.centre, default=None)


def basis(peak: Peak) -> str:
    """What it rests on, in words; suspect trials are told."""
    suspect = sum(record.status is Status.SUSPECT for record in peak.trials)
    return f"{peak.basis}; {suspect} suspect" if suspect else peak.basis


def at_its_peak(peak: Peak) -> str:
    """`at its peak of 8 clients (3 confirmation trials)`."""
    return f"at its peak of {counted(peak.clients, 'client')} ({basis(peak)})"
