"""Computes throughput and response time for each number of clients, the peak and its score. Also checks trials by
Little's law.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ironbench.model.note import Note, note
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record, Status
from ironbench.model.sample import is_conditional, sampled
from ironbench.model.system import Cell
from ironbench.records.described import described
from ironbench.stats.intervals import t_quantile
from ironbench.study.archive import EMPTY, Archive
from ironbench.study.rate import Rate
from ironbench.study.subjects import (
    Subject,
    counted_in,
    failed_share,
    subjects,
)
from ironbench.study.summarise import Summary, summarise, with_pooled

_MOST_LOST = 0.1
"""A note is added if confirmation trials fall below the sweep by more than this fraction.

The best of several noisy trials is too high by about one to two standard deviations (order statistics of a normal
sample: Harter 1961, Biometrika 48), which is 5 to 10% on small machines.
"""
_NOTABLE = 0.05
"""Minimum fraction of the machine's CPU time for a cause to be named."""
MOST_POOLED = 2000
"""Maximum number of trials for which all histograms are read, which takes up to 1 ms per trial. If there are more
trials, only histograms of trials at the peak are read."""
NOT_POOLED = note("percentiles-not-pooled", most=MOST_POOLED)
CURVE_METRICS = (
    "throughput",
    "new_orders_per_min",
    "failed_fraction",
    "response_time_mean_s",
    "response_time_p50_s",
    "response_time_p90_s",
    "response_time_p99_s",
)


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The trials with one number of clients."""

    clients: int
    trials: tuple[Record, ...]
    metrics: dict[str, Summary]


@dataclass(frozen=True, slots=True)
class Peak:
    """The number of clients with the highest throughput in the sweep, and the result of additional trials with this
    number.

    The maximum of noisy values is biased upwards ("winner's curse"). Therefore, the sweep's trials only choose the
    peak, and the additional trials measure its throughput.
    """

    clients: int
    chosen: Summary
    """Throughput of the sweep trials by which the peak was chosen."""
    metrics: dict[str, Summary]
    """Metrics of the confirmation trials, or of the sweep if there are none."""
    trials: tuple[Record, ...]
    confirmed: bool
    alone: bool = False
    """Whether only this number of clients was measured. In this case no peak was chosen, and no confirmation is
    needed."""
    alike: tuple[int, int] = (0, 0)
    """The numbers of clients whose throughput is indistinguishable from the highest: the smallest and the largest of
    them."""

    @property
    def throughput(self) -> Summary:
        return self.metrics["throughput"]

    @property
    def basis(self) -> Note:
        """Description of the trials behind the peak."""
        swept = not (self.confirmed or self.alone)
        return note("peak-basis", trials=len(self.trials), confirmed=self.confirmed, swept=swept)


@dataclass(frozen=True, slots=True)
class ThroughputCurve:
    """A system's points, ordered by number of clients."""

    name: str
    points: tuple[CurvePoint, ...]
    confirmations: tuple[Record, ...]
    rates: tuple[Rate, ...]
    """The rates of an open loop, one for each number of clients."""
    main: Peak | Rate | None
    """The peak of a closed loop, or the rate of an open loop. A report shows details of these trials."""

    @property
    def clients(self) -> tuple[int, ...]:
        return tuple(point.clients for point in self.points)

    @property
    def peak(self) -> Peak | None:
        """The peak, or None for an open loop."""
        return self.main if isinstance(self.main, Peak) else None

    @property
    def rate(self) -> Rate | None:
        """The main rate, or None for a closed loop."""
        return self.main if isinstance(self.main, Rate) else None


def curve(
    subject: Subject,
    archive: Archive = EMPTY,
    *,
    pool_points: bool = True,
    names: Sequence[str] | None = CURVE_METRICS,
) -> ThroughputCurve:
    """Builds the curve from the comparable trials that have a throughput. Trials that only load data have none.

    `archive`: source of the histograms, from which percentiles over several trials are computed. `pool_points`: whether
    to compute such percentiles for all points and not only for the peak. This requires reading every trial's
    histograms. `names`: metrics of the points; None for all.
    """
    usable = [record for record in subject.usable if "throughput" in record.metrics]
    swept = [record for record in usable if record.purpose != Purpose.CONFIRMATION]
    confirmations = [record for record in usable if record.purpose == Purpose.CONFIRMATION]
    points = tuple(
        CurvePoint(clients, group, metrics_of(group, names, archive if pool_points else EMPTY))
        for clients, group in _by_clients(swept or usable)
    )
    opened = subject.records[0].cell.load.rate is not None if subject.records else False
    rates = _rates(points, confirmations, archive) if opened else ()
    main = _main_rate(rates) if opened else _peak(points, confirmations, archive, whole=pool_points and names is None)
    return ThroughputCurve(subject.name, points, tuple(confirmations), rates, main)


def metrics_of(
    records: Sequence[Record], names: Sequence[str] | None = None, archive: Archive = EMPTY
) -> dict[str, Summary]:
    """Returns a summary of each metric that some record has, or only of `names` if given.

    A percentile includes only trials with enough transactions for it, and is computed over all these trials together.
    """
    wanted = names if names is not None else list(dict.fromkeys(name for record in records for name in record.metrics))
    known = [record.metrics for record in records]
    summaries = {}
    for name in wanted:
        if is_conditional(name):
            values = [one.metrics[name] for one in records if name in one.metrics and sampled(one, name)]
        else:
            values = [metrics[name] for metrics in known if name in metrics]
        summary = summarise(values)
        if summary is not None:
            summaries[name] = summary
    return with_pooled(summaries, records, archive)


def _by_clients(records: Sequence[Record]) -> list[tuple[int, tuple[Record, ...]]]:
    groups: dict[int, list[Record]] = {}
    for record in records:
        groups.setdefault(record.cell.load.clients, []).append(record)
    return [(clients, tuple(groups[clients])) for clients in sorted(groups)]


def _peak(
    points: Sequence[CurvePoint], confirmations: Sequence[Record], archive: Archive = EMPTY, *, whole: bool = False
) -> Peak | None:
    """Finds the peak. `whole`: whether the points contain all metrics. Otherwise, the metrics of the peak are
    computed."""
    with_throughput = [point for point in points if "throughput" in point.metrics]
    if not with_throughput:
        return None
    same = alike({point.clients: [one.metrics["throughput"] for one in point.trials] for point in with_throughput})
    best = next(point for point in with_throughput if point.clients == same[0])
    if confirmations:
        # The run with the confirmation trials chose the peak from its own sweep. If trials of other runs are included,
        # a different point may have the highest throughput.
        chosen = confirmations[-1].cell.load.clients
        best = next((point for point in with_throughput if point.clients == chosen), best)
    fresh = tuple(record for record in confirmations if record.cell.load.clients == best.clients)
    trials = fresh or best.trials
    alone = len(with_throughput) == 1
    summaries = best.metrics if whole and not fresh else metrics_of(trials, None, archive)
    return Peak(best.clients, best.metrics["throughput"], summaries, trials, bool(fresh), alone, (same[0], same[-1]))


_INDIFFERENT = 0.02
"""More clients are worthwhile only if they increase throughput by more than this fraction (same as
`model.search.Search.indifference`)."""


def alike(throughputs: Mapping[int, Sequence[float]]) -> list[int]:
    """Lists the numbers of clients whose throughput is indistinguishable from the highest, the fewest first.

    The first of these is the peak, because more clients would only add waiting. Two numbers of clients differ if the
    difference of their mean logarithms is larger than a one-sided 95% t interval and larger than 2%. The interval uses
    one variance for all numbers of clients (pooled variance: Snedecor and Cochran, "Statistical Methods", section 6.8).
    Without repeats, the variance is unknown, and only the limit of 2% applies.
    """
    logs = {
        clients: [math.log(value) for value in values]
        for clients, values in throughputs.items()
        if values and min(values) > 0
    }
    if not logs:
        return sorted(throughputs)[:1]
    means = {clients: statistics.fmean(own) for clients, own in logs.items()}
    best = max(sorted(means), key=means.__getitem__)
    freedom = sum(len(own) - 1 for own in logs.values())
    squares = sum((value - means[clients]) ** 2 for clients, own in logs.items() for value in own)
    factor = t_quantile(0.95, freedom) * math.sqrt(squares / freedom) if freedom else 0.0

    def told_apart(clients: int) -> float:
        return max(_INDIFFERENT, factor * math.sqrt(1 / len(logs[clients]) + 1 / len(logs[best])))

    return [clients for clients in sorted(means) if means[best] - means[clients] <= told_apart(clients)]


def _rates(points: Sequence[CurvePoint], confirmations: Sequence[Record], archive: Archive) -> tuple[Rate, ...]:
    """Returns a rate for each number of clients. Confirmation trials replace the trials by which a search chose the
    rate."""
    return tuple(
        Rate(trials[0].cell.load.rate or 0.0, clients, metrics_of(trials, None, archive), trials)
        for clients, trials in _by_clients(confirmations) or [(point.clients, point.trials) for point in points]
    )


def _main_rate(rates: Sequence[Rate]) -> Rate | None:
    """Returns the sustained rate with the fewest clients. If none was sustained, returns the rate with the highest
    throughput."""
    return max(rates, key=lambda one: (one.is_kept, -one.clients if one.is_kept else _finished(one)), default=None)


def _finished(one: Rate) -> float:
    return one.metrics["throughput"].centre if "throughput" in one.metrics else 0.0


def held_out_peak(subject: Subject) -> Peak | None:
    """Cross-validates the peak of a lab, which has no confirmation trials.

    The odd blocks choose a peak, and so do the even blocks. The throughput at the peak that one half chose is measured
    by the other half. If the halves disagree, the curve is flat, and the smaller number of clients is used. Returns
    None for trials of a sweep, if a half has no trials, or if there is only one number of clients.
    """
    trials = [record for record in subject.usable if record.purpose == Purpose.LAB and "throughput" in record.metrics]
    blocks = sorted({record.block for record in trials})
    halves = [[record for record in trials if record.block in half] for half in (blocks[::2], blocks[1::2])]
    first, second = (
        _peak([CurvePoint(count, group, metrics_of(group, CURVE_METRICS)) for count, group in _by_clients(half)], ())
        for half in halves
    )
    if first is None or second is None or len({record.cell.load.clients for record in trials}) < 2:
        return None
    best = min(first, second, key=lambda one: one.clients)
    chosen = [half for half, chose in zip(halves, (second, first), strict=True) if chose.clients == best.clients]
    fresh = tuple(record for half in chosen for record in half if record.cell.load.clients == best.clients)
    return Peak(best.clients, best.chosen, metrics_of(fresh), fresh, True) if fresh else None


def peak(sweep: Sequence[Record]) -> Cell | None:
    """Returns the configuration at the peak of a sweep. Confirmation trials measure this configuration. Returns None
    without comparable trials."""
    best = curve(Subject("", tuple(sweep))).peak
    return best.trials[0].cell if best else None


def lost_share(peak: Peak) -> float | None:
    """Returns the fraction by which confirmation trials fall below the sweep.

    Returns None unless even the best confirmation trial is far below the sweep.
    """
    promised, best = peak.chosen.centre, peak.throughput.high
    if not peak.confirmed or best >= promised * (1 - _MOST_LOST):
        return None
    return 1 - peak.throughput.centre / promised


def shortfall(curve: ThroughputCurve) -> tuple[Note, ...]:
    """Returns a note if confirmation trials fall far below the sweep (`lost_share`). The note contains the CPU time of
    other programs if they may be the cause."""
    peak = curve.peak
    if peak is None or (lost := lost_share(peak)) is None:
        return ()
    swept = next(point.trials for point in curve.points if point.clients == peak.clients)
    before, after = _others(swept), _others(peak.trials)
    taken = {}
    if before is not None and after is not None and after - before >= _NOTABLE:
        taken = {"taken_before": before, "taken": after}
    return (note("confirmed-less", clients=peak.clients, lost=lost, **taken),)


def _others(records: Sequence[Record]) -> float | None:
    """Returns the median fraction of CPU time that was used by other programs: neither the server nor the client nor
    ironbench. Returns None if it was not measured."""
    shares = [record.budget.taken for record in records if record.budget.measured]
    return statistics.median(shares) if shares else None


def score_of(peaks: Sequence[Peak]) -> str:
    """Returns the first of the workload's score metrics that at least one peak has. Returns an empty text if there is
    none."""
    names = described(peaks[0].trials[0]).scores if peaks else ()
    return next((name for name in names if any(name in peak.metrics for peak in peaks)), "")


def highest(records: Sequence[Record]) -> Peak | None:
    """Returns the highest peak of one system over all kinds of load with which it was measured."""
    peaks = [peak for subject in subjects(records) if (peak := curve(subject).peak) is not None]
    return max(peaks, key=lambda peak: peak.throughput.centre, default=None)


def basis(peak: Peak) -> Note:
    """Describes the trials behind the peak, including flagged trials and failed transactions."""
    suspect = sum(record.status is Status.SUSPECT for record in peak.trials)
    lost, units = failed_share(peak.trials) or 0.0, counted_in(peak.trials)[1]
    return Note(peak.basis.code, {**peak.basis.values, "suspect": suspect, "failed": lost, "units": units})


def at_its_peak(peak: Peak) -> Note:
    """Describes the peak's number of clients and the trials behind it."""
    return note("at-peak", clients=peak.clients, alone=peak.alone, basis=basis(peak))


TOLERANCE = 0.1
"""Maximum relative difference between the number of clients and throughput × time. The two differ slightly even in a
correct trial, because mean response time and throughput end at slightly different moments, and clients pause briefly
between messages.
"""


@dataclass(frozen=True, slots=True)
class LittlesLaw:
    """Little's law for a closed loop: clients = throughput × (response time + think time) (Operations Research 9(3),
    1961).

    The law is exact for long periods, but the measured time has two edges. A transaction that is still in progress at
    the end is missing from the response times, and a transaction that started before the measured time counts with its
    full response time. If clients wait long for locks, as writers in SQLite do, such transactions take a large part of
    the measured time, so both edges are corrected. The time for reconnecting is also added.
    """

    clients: int
    expected: float
    """Number of clients that the law predicts: throughput × (mean response time + think time), corrected for the
    window's edges and for reconnects."""

    @property
    def holds(self) -> bool:
        return abs(self.expected / self.clients - 1) <= TOLERANCE

    @property
    def note(self) -> Note:
        return note("littles-law", clients=self.clients, expected=self.expected, holds=self.holds)


def little(record: Record) -> LittlesLaw | None:
    """Checks Little's law. Returns None if the law does not apply:

    - An open loop, paced work, clients that rest, or a load curve: not all clients are busy.
    - Work that ends by itself: its window contains more than transactions (refresh functions, process starts).
    - More connections than clients: some wait for work.
    - A value is missing.
    """
    load = record.cell.load
    throughput = record.metrics.get("throughput")
    # Throughput counts the same transactions as the mean service time, but not always the same as the mean response
    # time. Service time is therefore preferred.
    response = record.metrics.get("service_time_mean_s", record.metrics.get("response_time_mean_s"))
    failed = record.metrics.get("failed", 0.0)
    endless = load.duration_s is not None or load.transactions is not None
    steady = load.rate is None and load.curve is None
    if not steady or not endless or load.clients < 1 or not throughput or not response or failed:
        return None
    known = described(record)
    if known.paced or known.rests or known.connections not in (None, load.clients):
        return None
    edges_s = record.metrics.get("unfinished_s", 0.0) - record.metrics.get("carried_s", 0.0)
    apart_s = record.metrics.get("reconnects", 0.0) * record.metrics.get("reconnect_mean_s", 0.0)
    more = (edges_s + apart_s) / record.elapsed_s if record.elapsed_s > 0 else 0.0
    return LittlesLaw(load.clients, throughput * (response + load.think_time_s) + more)
