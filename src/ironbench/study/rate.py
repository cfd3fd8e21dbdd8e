"""Results of an open loop: its target rate, and whether the system sustained the rate. The target rate determines
throughput, so throughput is neither a peak nor a score, and a ratio of throughputs has no meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ironbench.catalogue import PER_UNIT, base_name, metrics
from ironbench.model.note import Note, note
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record, machines_of
from ironbench.records.described import described
from ironbench.study.summarise import Summary

_ASKED = ("throughput", "scheduled_throughput", "engine_commits_per_s")
"""Metrics that only repeat the target rate."""
_PER_UNIT = (PER_UNIT, "load_")
"""Parts of the names of metrics that do not depend on the rate. These are metrics per transaction and metrics of the
load phase."""

REQUESTED = note("rate-requested")
PACED = note("paced-by-records")
UNLIKE = note("loads-unlike")
TOTAL = note("totals-of-unlike-work")
"""Codes of the reasons why no ratio is shown."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Results at one rate with one number of clients."""

    rate: float
    """Target rate: transactions started per second."""
    clients: int
    metrics: dict[str, Summary]
    trials: tuple[Record, ...]

    @property
    def finished(self) -> Summary | None:
        """Successful transactions per second. Only transactions to which the rate applies are counted."""
        return self.metrics.get("scheduled_throughput", self.metrics.get("throughput"))

    @property
    def kept(self) -> int:
        """Number of trials that sustained the rate."""
        return sum(record.kept_rate is True for record in self.trials)

    @property
    def is_kept(self) -> bool:
        """Whether every trial sustained the rate."""
        return self.kept == len(self.trials)

    @property
    def confirmed(self) -> bool:
        """Whether all trials are confirmation trials. A search then chose the rate by earlier trials."""
        return all(record.purpose == Purpose.CONFIRMATION for record in self.trials)

    @property
    def basis(self) -> Note:
        return note("rate-basis", rate=self.rate, trials=len(self.trials), confirmed=self.confirmed)

    @property
    def outcome(self) -> Note:
        """How many trials sustained the rate."""
        return note("rate-outcome", kept=self.kept, trials=len(self.trials), confirmed=self.confirmed)


NEGLIGIBLE_SHARE = 0.01
"""For smaller fractions, no ratio is shown, because a ratio would reflect only rounding and chance."""


def starts_at_recorded_times(record: Record) -> bool:
    """Returns whether the workload starts operations at recorded times."""
    return described(record).paced


def recorded_pace(record: Record) -> float | None:
    """Returns the pace of operations that start at recorded times, as a multiple of the recorded pace. Returns None for
    other workloads."""
    return float(record.choice.options.get("speed", 1)) if starts_at_recorded_times(record) else None


def is_share(metric: str) -> bool:
    return base_name(metric).endswith(("_share", "_fraction"))


def without_ratio(metric: str, a: float, b: float) -> bool:
    """Returns whether no ratio of two fractions is shown, because one of them is close to zero. The report shows the
    difference in percentage points instead."""
    return is_share(metric) and min(a, b) < NEGLIGIBLE_SHARE


class Ratios:
    """Decides which metrics of A and B have a meaningful ratio. Examines the trials once, for all metrics."""

    def __init__(self, a: Sequence[Record], b: Sequence[Record]) -> None:
        trials = (*a, *b)
        self._opened = any(record.cell.load.rate is not None for record in trials)
        self._paced = any(map(starts_at_recorded_times, trials))
        self._alike = _alike(trials)
        self._equal_work = _equal_work(trials)

    def lacking(self, metric: str) -> Note | None:
        """Returns the reason why a metric has no meaningful ratio. Returns None if it has one."""
        name = base_name(metric)
        if name in _ASKED and self._opened:
            return REQUESTED
        if name in _ASKED and self._paced:
            return PACED
        if not self._alike and not any(part in name for part in _PER_UNIT):
            return UNLIKE
        known = metrics().get(name)
        return TOTAL if known and known.total and not self._equal_work else None


def _equal_work(trials: Sequence[Record]) -> bool:
    """Returns whether all trials ran the same number of transactions because the user declared a number or a rate. Also
    returns True if no trial counts transactions."""
    loads = [record.cell.load for record in trials]
    given = {load.transactions if load.rate is None else (load.rate, load.duration_s) for load in loads}
    return (len(given) == 1 and given != {None}) or not any("transactions" in record.metrics for record in trials)


def _alike(trials: Sequence[Record]) -> bool:
    """Returns whether all trials had the same rate and the same arrivals. If they had a rate, all of them must have
    sustained it."""
    asked = {(record.cell.load.rate, record.cell.load.arrivals) for record in trials}
    return len(asked) == 1 and not any(record.kept_rate is False for record in trials)


def of_one_system(a: Record, b: Record) -> bool:
    """Returns whether two trials are open loops of the same system that differ only in their rate, such as points of a
    search."""
    shapes = [replace(one.cell.load.shape, rate=None, rate_share=None) for one in (a, b)]
    opened = all(one.cell.load.rate is not None for one in (a, b))
    return opened and (a.system, machines_of(a), shapes[0]) == (b.system, machines_of(b), shapes[1])


def clients_asked(sides: Sequence[Sequence[Record]]) -> list[dict[str, str]]:
    """Returns the numbers of clients and threads of each side as facts. Returns no facts for closed loops, in which
    these numbers vary on purpose."""
    if not all(records and all(record.cell.load.rate is not None for record in records) for records in sides):
        return [{} for _ in sides]

    def numbers(name: str, records: Sequence[Record]) -> str:
        return ", ".join(map(str, sorted({getattr(record.cell.load, name) for record in records})))

    return [{f"load.{name}": numbers(name, records) for name in ("clients", "threads")} for records in sides]
