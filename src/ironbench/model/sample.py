"""Decides whether a trial has enough transactions for a percentile.

The same rule applies to all percentiles, in trials, curves, targets and findings. A percentile has an upper bound only
if the largest of the n values is above it. This must be so with 95% confidence. For any distribution, all n values are
below the p-quantile with probability pⁿ, so pⁿ must be at most 0.05 (David and Nagaraja, Order Statistics, 3rd ed.,
2003, section 7.1). A median therefore needs 5 transactions, a 99th percentile 299, and a 99.9th percentile 2,995. This
agrees with the rule of three, by which at least about three values should lie beyond the percentile.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Protocol

from ironbench.model.note import Note, note
from ironbench.model.record import Record

_DOUBT = 0.05
_POOLED = ("response_time", "service_time")
_IOS_PER_S = {
    "device_read_latency": "device_reads_per_s",
    "device_write_latency": "device_writes_per_s",
    "device_flush_latency": "device_flushes_per_s",
}
_STATISTIC = re.compile(rf"({'|'.join(_POOLED)})_(p\d+|mean|stdev|max)_s(\{{.*\}})?")
_PERCENTILE = re.compile(rf"({'|'.join([*_POOLED, 'lateness', *_IOS_PER_S])})_p(\d+)_s(\{{.*\}})?")
"""Pattern of percentiles whose number of values is among the trial's metrics. For other percentiles, the number is not
recorded. `quantiles` therefore leaves out such a percentile when it is computed from too few values."""


_HISTOGRAM_RESOLUTION = 1e-3
"""Maximum relative error of a percentile. Histograms keep three significant digits (`measure/histogram.rs`)."""


def resolution(metric: str) -> float:
    """Returns the maximum relative error of the ratio of two values of a metric, if the values are rounded. Returns 0
    for exact values."""
    return _HISTOGRAM_RESOLUTION if _percentile(metric) is not None else 0.0


@cache
def needed(share: float) -> int:
    """Returns the minimum number of transactions for a percentile."""
    return math.ceil(math.log(_DOUBT) / math.log(share))


def enough(share: float, count: float) -> bool:
    return count >= needed(share)


def is_conditional(metric: str) -> bool:
    """Returns whether the result of `sampled` for this metric depends on the trial."""
    return _percentile(metric) is not None or _tail(metric) is not None


def sampled(record: Record, metric: str) -> bool:
    """Returns whether a page may show the trial's value of the metric. The trial must have enough transactions for it.
    In addition, transactions that never ended must be too few to change the value much."""
    return not few(record, metric) and not unresolved(record, metric)


def few(record: Record, metric: str) -> bool:
    """Returns whether the metric is a percentile of too few transactions. Returns False if the number of transactions
    is unknown."""
    needs = _needs(metric)
    count = None if needs is None else _counted(record, needs[1])
    return needs is not None and count is not None and count < needs[0]


def _counted(record: Record, rate_name: str | None) -> float | None:
    """Returns the number of transactions of a trial. If `rate_name` is the transaction rate of one part of the trial,
    returns the number for this part."""
    if rate_name is not None and (rate := record.metrics.get(rate_name)) is not None:
        return rate * record.elapsed_s
    return record.metrics.get("transactions")


def least_duration_s(records: Sequence[Record], metrics: Sequence[str]) -> float:
    """Returns how many seconds a trial like these must last to have enough transactions for these percentiles. Returns
    0 if the trials are already long enough."""
    lasting = [0.0]
    for record in records:
        for metric in metrics:
            needs = _needs(metric)
            if needs is not None and few(record, metric) and (count := _counted(record, needs[1])):
                lasting.append(record.elapsed_s * needs[0] / count)
    return max(lasting)


_MARGIN = 2
"""Minimum ratio of the tail beyond a percentile to the fraction of transactions that never ended.

Transactions that never ended are assumed to be the slowest. The percentile is exact as long as it lies below all of
them. The ratio is greater than 1, because some of them might not have been among the slowest.
"""


def unresolved(record: Record, metric: str) -> bool:
    """Returns whether transactions that never ended make the value unknown (right-censored). Such transactions were
    scheduled, but had not ended when the trial finished draining. A mean and a maximum are then only lower bounds."""
    tail = _tail(metric)
    waiting = _never_ended(record) if tail is not None else 0.0
    if tail is None or not waiting:
        return False
    return tail < _MARGIN * waiting / (waiting + record.metrics.get("transactions", 0.0))


def _never_ended(record: Record) -> float:
    """Returns the number of transactions that never ended.

    Earlier versions did not wait for unfinished transactions at the end of an open loop, so no percentile in their
    records includes these transactions.
    """
    metrics = record.metrics
    if "longest_wait_s" in metrics or not metrics.get("not_started"):
        return metrics.get("censored", 0.0)
    return metrics["not_started"] + metrics.get("unfinished", 0.0)


@cache  # cached because names are few and trials many
def _tail(metric: str) -> float | None:
    """Returns the fraction of transactions beyond a statistic of response or service times. Returns None for other
    metrics."""
    match = _STATISTIC.fullmatch(metric)
    if match is None:
        return None
    return 1.0 - _share(match[2][1:]) if match[2].startswith("p") else 0.0


@cache  # cached because names are few and trials many
def _needs(metric: str) -> tuple[int, str | None] | None:
    """Returns the minimum number of transactions for a percentile. If the percentile is of one part of a trial, also
    returns the name of the metric with the part's transaction rate."""
    match = _percentile(metric)
    if match is None:
        return None
    rate = f"{_IOS_PER_S.get(match[1], 'throughput')}{match[3]}" if match[3] is not None else None
    return needed(_share(match[2])), rate


class QuantileSource(Protocol):
    """The methods of a histogram that `quantiles` needs."""

    @property
    def count(self) -> int: ...

    def quantiles(self, shares: Sequence[float]) -> Sequence[float]: ...


def quantiles(times: QuantileSource, shares: Mapping[str, float], least: int | None = None) -> dict[str, float]:
    """Returns the quantiles by name. `shares`: quantile levels by name. Leaves out quantiles of fewer values than
    necessary, or of fewer than `least` values."""
    known = {name: share for name, share in shares.items() if times.count >= (least or needed(share))}
    return dict(zip(known, times.quantiles(list(known.values())), strict=True)) if known else {}


def listed(record: Record, metric: str) -> bool:
    """Returns whether lists and tables of trials show the metric. The metric must be `sampled`. If it is a response
    time at a target rate, the rate must have been sustained."""
    return sampled(record, metric) and not late(record, metric)


def late(record: Record, metric: str) -> bool:
    """Returns whether the metric is a response time at a target rate that was not sustained. Such a response time grows
    for as long as the trial lasts."""
    return record.kept_rate is False and metric.startswith("response_time")


@cache  # cached because names are few and trials many
def _percentile(metric: str) -> re.Match[str] | None:
    return _PERCENTILE.fullmatch(metric)


def percentile(metric: str) -> tuple[str, float] | None:
    """Splits `response_time_p99_s{script=x}` into its histogram, `response_time{script=x}`, and 0.99. Returns None for
    other metrics."""
    match = _percentile(metric)
    return (match[1] + (match[3] or ""), _share(match[2])) if match and match[1] in _POOLED else None


def percentile_name(histogram: str, share: float) -> str:
    """Returns the name of the metric with a percentile: `response_time` and 0.99 become `response_time_p99_s`."""
    digits = f"{share:.5f}"[2:]
    return f"{histogram}_p{digits[:2]}{digits[2:].rstrip('0')}_s"


IN_TABLES = ("response_time_p50_s", "response_time_p99_s")
"""Percentiles that tables of runs show; `show RECORD` prints all percentiles."""


def too_few(records: Sequence[Record], units: str, shown: Sequence[str] | None = None) -> tuple[Note, ...]:
    """Returns notes on the percentiles that a page leaves out. `shown`: the percentiles that the page would show; None
    for all."""
    every = {name for record in records for name in record.metrics}
    names = {name for name in every if shown is None or name.partition("{")[0] in shown}
    ios = {name for name in names if name.startswith(tuple(_IOS_PER_S))}
    notes = [(what, lacking(records, list(own))) for what, own in ((units, names - ios), ("I/Os", ios))]
    found = [note("percentiles-of-too-few", units=what, needs=needs) for what, needs in notes if needs]
    if any(unresolved(record, name) for record in records for name in names):
        found.append(note("percentiles-unresolved", units=units))
    return tuple(found)


def lacking(records: Sequence[Record], metrics: Sequence[str]) -> tuple[tuple[float, int], ...]:
    """Returns those of the percentiles for which at least one trial has too few transactions, as pairs of the level and
    the number of transactions that the percentile needs, such as (0.99, 299)."""
    names = {name for record in records for name in metrics if name in record.metrics and few(record, name)}
    digits_of = sorted({match[2] for name in names if (match := _percentile(name))}, key=_share)
    return tuple((_share(digits), needed(_share(digits))) for digits in digits_of)


def _share(digits: str) -> float:
    """Converts the digits in a percentile's name to a fraction: `999` to 0.999."""
    return float(f"0.{digits}")
