"""Summarises repeated trials of one configuration. Computes the centre, the range, the confidence interval, percentiles
over all trials, and means of runs. The interval is Student's t interval (Biometrika 6, 1908). With fewer than three
values, there is only a range.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, geometric_mean
from typing import Any

from ironbench.catalogue import base_name
from ironbench.model.cost import CostRange
from ironbench.model.record import Record
from ironbench.model.sample import enough, percentile, sampled
from ironbench.stats.intervals import half_width, t_quantile
from ironbench.study.archive import EMPTY, Archive

_LEAST = 3
"""Minimum number of values for a confidence interval."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Summary of n values of one metric in one configuration, in the metric's unit."""

    n: int
    centre: float
    """The median, which is robust against one bad trial. For a percentile over several trials, this is the percentile
    of all their transactions together (`with_pooled`)."""
    mean: float
    low: float
    high: float
    """Smallest and largest value."""
    deviation: float
    """Standard deviation. 0 for one value."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """95% t interval of the mean, or None if there are fewer than 3 values. The interval assumes independent,
        roughly normal values."""
        if self.n < _LEAST:
            return None
        half = t_quantile(0.975, self.n - 1) * self.deviation / math.sqrt(self.n)
        return self.mean - half, self.mean + half

    @property
    def spread(self) -> float:
        """Range divided by the centre, which is 0 for one value and infinite if the centre is 0."""
        if self.high == self.low:
            return 0.0
        return (self.high - self.low) / abs(self.centre) if self.centre else math.inf


def summarise(values: Sequence[float]) -> Summary | None:
    """Summarises finite values. Returns None if there are none, because a value that was not measured must not count as
    zero."""
    finite = [float(value) for value in values if math.isfinite(value)]
    if not finite:
        return None
    mean, low, high = statistics.fmean(finite), min(finite), max(finite)
    # `statistics.stdev` would take 20 times as long, because it computes with fractions.
    squares = math.fsum((value - mean) ** 2 for value in finite) if high > low else 0.0
    deviation = math.sqrt(squares / (len(finite) - 1)) if squares else 0.0
    return Summary(len(finite), statistics.median(finite), mean, low, high, deviation)


def overlap(a: Summary, b: Summary) -> bool:
    """Returns whether the ranges of two summaries overlap."""
    return a.low <= b.high and b.low <= a.high


def over_passes(metrics: Mapping[str, Summary], name: str) -> Summary:
    """Returns the summary of a metric. For the storage workload, its range covers all passes of all trials.

    This workload records the lowest and the best pass of a trial. Other workloads do not, so their range covers the
    values of the trials.
    """
    own, base = metrics[name], base_name(name)
    lowest, best = (metrics.get(f"{base}_{end}{name[len(base) :]}") for end in ("lowest", "best"))
    return replace(own, low=lowest.low if lowest else own.low, high=best.high if best else own.high)


# The median of the 99th percentiles of three trials is not a 99th percentile. Percentiles over several trials are
# therefore computed from merged histograms. They cover the transactions of all trials together, unless a page states
# otherwise.


def merged(trials: Sequence[Record], names: Sequence[str], archive: Archive) -> dict[str, Any]:
    """Merges each histogram, such as `response_time{script=x}`, over the trials that have it. Reads each trial once."""
    pooled: dict[str, Any] = {}
    for record in trials:
        histograms = archive.histograms(record.id)
        for name in names:
            if name not in histograms:
                continue
            if name in pooled:
                pooled[name].merge(histograms[name])
            else:
                pooled[name] = type(histograms[name]).from_bytes(histograms[name].to_bytes())
    return pooled


def pooled_percentiles(
    wanted: Mapping[str, tuple[str, float]], trials: Sequence[Record], archive: Archive
) -> dict[str, tuple[float, int]]:
    """Returns each percentile in seconds and the number of transactions that it was computed from.

    A percentile includes only trials with enough transactions for it (`sampled`). A percentile is left out if there is
    no such trial, or if there are too few transactions for it. `wanted`: for each metric, the result of `percentile`,
    which is the name of the histogram and the fraction.
    """
    by_trials: dict[tuple[int, ...], list[str]] = {}
    for metric in wanted:
        entered = tuple(at for at, one in enumerate(trials) if sampled(one, metric))
        by_trials.setdefault(entered, []).append(metric)
    found: dict[str, tuple[float, int]] = {}
    for places, metrics in by_trials.items():
        names = sorted({wanted[metric][0] for metric in metrics})
        histograms = merged([trials[at] for at in places], names, archive)
        for metric in metrics:
            name, share = wanted[metric]
            if name in histograms and enough(share, histograms[name].count):
                found[metric] = float(histograms[name].quantiles([share])[0]), histograms[name].count
    return found


def with_pooled(summaries: Mapping[str, Summary], trials: Sequence[Record], archive: Archive) -> dict[str, Summary]:
    """Replaces the centres of percentiles in `summaries`. The new centre of a percentile is computed over the
    transactions of all trials together. Ranges are unchanged. Centre and range are based on the same trials, so the
    centre is within the range. If no trial has a histogram, the centre stays the median of the trials.
    """
    known = {metric: of for metric in summaries if (of := percentile(metric)) is not None}
    if len(trials) < 2 or not known or archive is EMPTY:
        return dict(summaries)
    pooled = {
        metric: replace(summaries[metric], centre=value)
        for metric, (value, _) in pooled_percentiles(known, trials, archive).items()
    }
    return {**summaries, **pooled}


@dataclass(frozen=True, slots=True)
class Repeats:
    """Positive values of one metric."""

    of_trials: tuple[float, ...]
    values: tuple[float, ...]
    """Independent repeats. If the trials are independent, their values. Otherwise, the geometric mean of the trials of
    each run."""
    runs: int
    """Number of runs."""

    @property
    def centre(self) -> float:
        """The geometric mean. The quotient of two systems' centres is then the ratio that `compare` shows."""
        # For equal values, the logarithms would only add rounding errors.
        alike = min(self.of_trials) == max(self.of_trials)
        return self.of_trials[0] if alike else geometric_mean(self.values)

    def range(self, centre: float) -> CostRange:
        """Returns `centre` with its 95% confidence interval. The interval is computed from runs. If there is only one
        run, it is computed from trials.

        The interval is Student's t interval of the logarithms. With fewer than two values, it is unbounded.
        """
        known = self.values if self.runs > 1 else self.of_trials
        if len(known) < 2:
            return CostRange(0.0, math.inf, centre)
        if min(known) == max(known):
            return CostRange(min(known[0], centre), max(known[0], centre), centre)
        logs = [math.log(value) for value in known]
        mean, half = fmean(logs), half_width(logs)
        return CostRange(min(math.exp(mean - half), centre), max(math.exp(mean + half), centre), centre)


def repeats(trials: Sequence[Record], metric: str, interleaved: bool = False) -> Repeats:
    """Groups the trials' values into repeats. `interleaved`: whether the trials are from blocks of a lab that measured
    all systems in turn.

    Blocks of a lab are independent repeats. Otherwise, each run is one repeat. The trials of a run have the server
    start and the state of the machine in common, so they vary less than runs do.
    """
    values = [(record.series, record.metrics.get(metric, 0.0)) for record in trials if sampled(record, metric)]
    return grouped([(run, value) for run, value in values if 0 < value < math.inf], interleaved)


def grouped(values: Iterable[tuple[str, float]], interleaved: bool = False) -> Repeats:
    """Groups positive values of trials by run, as `repeats` does. `values`: (run, value) of each trial."""
    runs: dict[str, list[float]] = {}
    for run, value in values:
        runs.setdefault(run, []).append(value)
    flat = tuple(value for run in runs.values() for value in run)
    of_runs = flat if interleaved else tuple(map(geometric_mean, runs.values()))
    return Repeats(flat, of_runs, len(of_runs))
