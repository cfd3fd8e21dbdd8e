"""Time lines of a trial, which show throughput, response times and devices second by second, and how the trial followed
a load curve.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from ironbench.catalogue import base_name, part_of
from ironbench.model.curve import Curve
from ironbench.model.record import Record
from ironbench.model.sample import percentile_name
from ironbench.study.archive import Archive, Columns
from ironbench.study.summarise import pooled_percentiles

MOST_POINTS = 400
QUANTILES = (
    0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.97, 0.98, 0.99,
    0.995, 0.998, 0.999, 0.9995, 0.9998, 0.9999, 0.99995, 0.99999,
)  # fmt: skip
_DEVICE = (
    "device_write_bytes_per_s",
    "device_read_bytes_per_s",
    "device_writes_per_s",
    "device_reads_per_s",
    "device_write_latency_s",
    "device_read_latency_s",
    "device_flushes_per_s",
    "device_flush_latency_s",
    "device_utilisation_share",
)


_EVERY_SECOND = {
    "throughput": "transactions",
    "failed": "errors",
    "response_time_mean_s": "response_mean_s",
    "response_time_p50_s": "response_p50_s",
    "response_time_p99_s": "response_p99_s",
}
"""For each metric, the name of its column in the stored time series."""
_PERCENTILE = re.compile(r"_p\d+_s$")
_LATE = 0.05
"""The last second counts as complete if at most this many seconds of it are missing."""

ONE_DEVICE = 0.02
"""Two roles are assumed to be on the same device if their counters differ by at most this fraction."""


@dataclass(frozen=True, slots=True)
class TimelineSeries:
    """A quantity over time, without NaN."""

    metric: str
    part: str
    """Role such as `log`. Empty for the total."""
    t_s: tuple[float, ...]
    value: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Timelines of one trial."""

    trial: str
    step_s: float
    """Seconds per point of the time lines."""
    lines: tuple[TimelineSeries, ...] = ()
    devices: tuple[TimelineSeries, ...] = ()
    own: tuple[TimelineSeries, ...] = ()
    """Time lines that a workload with its own code recorded. There is one for each of its profiles."""


@dataclass(frozen=True, slots=True)
class SecondOfTrial:
    """A quantity in one second of a trial."""

    trial: str
    """Id of the record."""
    status: str
    """Status of the trial in words."""
    metric: str
    t_s: float
    """Start of the second, counted from the start of the measured time."""
    value: float


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Percentiles of response times or service times, computed over all transactions of several trials."""

    metric: str
    count: int
    """Largest number of transactions from which a percentile is computed."""
    points: tuple[tuple[float, float], ...] = field(default=())
    """Pairs (level, seconds). The level is a fraction of transactions."""


def typical(trials: Sequence[Record]) -> Record:
    """Returns the trial with the median throughput. With an even number of trials, this is the lower of the two middle
    trials. Unlike a mean of trials, this trial has a time line."""
    ranked = sorted(trials, key=lambda record: (record.metrics.get("throughput", 0.0), record.id))
    return ranked[(len(ranked) - 1) // 2]


def timeline(record: Record, archive: Archive) -> Timeline:
    seconds = archive.seconds(record.id)
    times = [float(t) for t in seconds.get("t_s", ())]
    step = max(1, math.ceil(len(times) / MOST_POINTS))
    # If the trial ended during the last second, the count of this second is not a rate.
    whole = sum(t + 1.0 <= record.elapsed_s + _LATE for t in times)
    lines = tuple(
        TimelineSeries(name, "", *_thinned(times[:known], list(map(float, seconds[column]))[:known], step, reduce))
        for name, column, reduce in (
            ("throughput", "transactions", fmean),
            ("errors", "errors", fmean),
            ("response_time_p50_s", "response_p50_s", _middle),
            ("response_time_p99_s", "response_p99_s", max),
        )
        if column in seconds
        for known in (whole if reduce is fmean else len(times),)
    )
    observed = archive.observed(record.id)
    return Timeline(record.id, float(step), lines, devices(observed), _observer_series(observed))


def line(metric: str, times: Sequence[float], values: Sequence[float]) -> TimelineSeries:
    """Returns a quantity over time with at most `MOST_POINTS` points. A point is the mean of several values, or for
    percentiles their maximum."""
    reduce: Callable[[Sequence[float]], float] = max if _PERCENTILE.search(metric) else fmean
    return TimelineSeries(metric, "", *_thinned(times, values, max(1, math.ceil(len(times) / MOST_POINTS)), reduce))


def every_second(trial: Record, archive: Archive) -> Iterator[SecondOfTrial]:
    """Yields throughput, failures and response times for every second of the trial's stored time series."""
    seconds = archive.seconds(trial.id)
    for metric, column in _EVERY_SECOND.items():
        for t, value in zip(seconds.get("t_s", ()), seconds.get(column, ()), strict=False):
            # The count of an incomplete last second is not a rate. A second without transactions has no response times.
            whole = metric != "throughput" or t + 1.0 <= trial.elapsed_s + _LATE
            if whole and math.isfinite(value):
                yield SecondOfTrial(trial.id, trial.status.word, metric, float(t), float(value))


def _observer_series(observed: Mapping[str, Columns]) -> tuple[TimelineSeries, ...]:
    return tuple(
        TimelineSeries(
            base_name(name),
            part_of(name).removeprefix("profile="),
            tuple(float(t) for t in columns["t_s"]),
            tuple(float(value) for value in columns["value"]),
        )
        for name, columns in observed.items()
        if part_of(name).startswith("profile=")
    )


def devices(observed: Mapping[str, Columns]) -> tuple[TimelineSeries, ...]:
    """Returns device time lines by role, without those that are always zero. Roles on one device share a line."""
    lines: list[TimelineSeries] = []
    for name in sorted(observed, key=_device_order):
        if base_name(name) in _DEVICE:
            points = zip(observed[name]["t_s"], observed[name]["value"], strict=True)
            window = [(float(t), float(value)) for t, value in points if t >= 0]
            times, values = [t for t, _ in window], [value for _, value in window]
            line = TimelineSeries(
                base_name(name),
                part_of(name).removeprefix("role="),
                *_thinned(times, values, max(1, math.ceil(len(times) / MOST_POINTS)), fmean),
            )
            twin = next((place for place, other in enumerate(lines) if _same(other, line)), None)
            if twin is not None:
                lines[twin] = replace(line, part=f"{lines[twin].part} and {line.part}")
            elif any(line.value):
                lines.append(line)
    return tuple(lines)


def _same(a: TimelineSeries, b: TimelineSeries) -> bool:
    """Returns whether two roles have the same device. The counters of one device differ very little if they are read
    shortly after each other."""
    if a.metric != b.metric or len(a.value) != len(b.value) or not any(a.value):
        return False
    apart = sum(abs(x - y) for x, y in zip(a.value, b.value, strict=True))
    return apart <= ONE_DEVICE * sum(a.value)


def percentiles(trials: Sequence[Record], archive: Archive, metric: str = "response_time") -> Percentiles | None:
    """Returns percentiles over the transactions of `trials` together. Returns None if there are too few transactions
    for a median.

    A percentile for which some trials have too few transactions is left out: computed from the other trials only, it
    could be lower than a percentile below it.
    """
    wanted = {percentile_name(metric, share): (metric, share) for share in QUANTILES}
    found = pooled_percentiles(wanted, trials, archive)
    if percentile_name(metric, 0.5) not in found:
        return None
    all_transactions = max(count for _, count in found.values())
    points = ((wanted[name][1], seconds) for name, (seconds, count) in found.items() if count == all_transactions)
    return Percentiles(metric, all_transactions, tuple(sorted(points)))


def _thinned(
    times: Sequence[float], values: Sequence[float], step: int, reduce: Callable[[Sequence[float]], float]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    kept_t, kept = [], []
    for start in range(0, len(times), step):
        part = [value for value in values[start : start + step] if math.isfinite(value)]
        if part:
            kept_t.append(times[start])
            kept.append(float(reduce(part)))
    return tuple(kept_t), tuple(kept)


def _middle(values: Sequence[float]) -> float:
    return sorted(values)[(len(values) - 1) // 2]


def _device_order(name: str) -> tuple[int, str]:
    base = base_name(name)
    return (_DEVICE.index(base) if base in _DEVICE else len(_DEVICE), name)


KEPT = 0.95
"""A point reaches the requested rate if its throughput is at least this fraction of the rate. The same fraction applies
to reaching the highest throughput."""
_EARLY = 0.85
"""A knee must be before this fraction of the ramp. If the highest throughput is reached later, there is no knee."""
_CHANCE = 4.0
"""Minimum shortfall of throughput for a knee, in standard deviations. This minimum is large, because each of the many
points of a ramp could fall short by chance."""
_IN_A_ROW = 3
"""Number of consecutive points at which throughput must fall short. A single such point may be caused by a
checkpoint."""


@dataclass(frozen=True, slots=True)
class TimelinePoint:
    """A point of the trial's timeline."""

    t_s: float
    asked: float
    """Requested load: the mean of the load curve during the point's time, in transactions per second or clients."""
    done: float
    """Transactions finished per second."""


@dataclass(frozen=True, slots=True)
class LoadCourse:
    """Course of one trial along its load curve."""

    curve: Curve
    moments: tuple[TimelinePoint, ...]
    p99_s: tuple[tuple[float, float], ...]
    """Pairs (second, 99th percentile of response times)."""

    @property
    def knee(self) -> float | None:
        """Load of a ramp above which throughput no longer grows. The value is None without a ramp, or if throughput
        grows until the end. This is an estimate, because queues and caches react to the load with a delay.
        """
        if not self.curve.is_ramp:
            return None
        return _rate_knee(self.moments) if self.curve.of == "rate" else _clients_knee(self.moments)


def course(record: Record, timeline: Timeline) -> LoadCourse | None:
    """Returns the course of a trial. Returns None if the load was constant or no time line is stored."""
    curve = record.cell.load.curve
    lines: Mapping[str, Mapping[float, float]] = {
        line.metric: dict(zip(line.t_s, line.value, strict=True)) for line in timeline.lines
    }
    done = lines.get("throughput", {})
    if curve is None or len(done) < 2:
        return None
    step_s = timeline.step_s
    moments = tuple(TimelinePoint(t_s, curve.mean(t_s, t_s + step_s), value) for t_s, value in done.items())
    return LoadCourse(curve, moments, tuple(lines.get("response_time_p99_s", {}).items()))


def _rate_knee(moments: Sequence[TimelinePoint]) -> float | None:
    """Finds the first of several consecutive points with a significant shortfall, and returns its rate. Returns None if
    there are no such points.

    Random arrivals follow a Poisson distribution, whose variance equals its mean.
    """
    step_s = moments[1].t_s - moments[0].t_s
    behind: list[TimelinePoint] = []
    for place, moment in enumerate(moments):
        behind = [*behind, moment] if moment.done < KEPT * moment.asked else []
        asked = step_s * sum(one.asked for one in behind)
        lacking = asked - step_s * sum(one.done for one in behind)
        if len(behind) < _IN_A_ROW or lacking <= _CHANCE * math.sqrt(asked):
            continue
        # If the system later keeps up with a higher load, this point was only a stall. The knee is then at a later
        # point.
        if not _keeps_up(moments[place + 1 :], step_s):
            return behind[0].asked
    return None


def _keeps_up(later: Sequence[TimelinePoint], step_s: float) -> bool:
    """Returns whether the system keeps up with the requested rate at several consecutive points. Points with a higher
    throughput than requested do not count, because the system is then catching up after a stall."""
    kept = 0
    for one in later:
        chance = _CHANCE * math.sqrt(one.asked / step_s) if step_s else 0.0
        kept = kept + 1 if KEPT * one.asked <= one.done <= one.asked + chance else 0
        if kept >= _IN_A_ROW:
            return True
    return False


def _clients_knee(moments: Sequence[TimelinePoint]) -> float | None:
    """Returns the smallest number of clients with nearly the highest throughput (`KEPT`). Throughput is smoothed over
    neighbouring points."""
    smooth = [
        sum(one.done for one in moments[max(0, place - 1) : place + 2]) / len(moments[max(0, place - 1) : place + 2])
        for place in range(len(moments))
    ]
    first = next(place for place, value in enumerate(smooth) if value >= KEPT * max(smooth))
    # If throughput grows linearly, it also reaches this fraction of the maximum, but only near the end. More clients
    # might then increase throughput further, so this is not a knee.
    return moments[first].asked if first < _EARLY * len(moments) else None
