"""Converts raw samples to rates and means, for all observers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from ironbench.model.observation import Sample, Series

Values = dict[str, float]


@dataclass(frozen=True, slots=True)
class SamplePoint:
    """The values of one sample, taken `t_s` after the start of the measured window."""

    t_s: float
    values: Values


def points(samples: Iterable[Sample] | None, parser: Callable[[str], Values]) -> list[SamplePoint]:
    """Parses samples in order. Skips samples that cannot be parsed (a torn or empty reading)."""
    parsed = []
    for sample in samples or ():
        try:
            values = parser(sample.raw.decode("utf-8", "replace"))
        except (ValueError, IndexError, KeyError, TypeError):
            continue
        if values:
            parsed.append(SamplePoint(sample.t_s, values))
    return parsed


@dataclass(frozen=True, slots=True)
class CounterGrowth:
    """Increase of counters during `span_s` seconds of the measured window."""

    span_s: float
    by: Values

    def rate(self, key: str) -> float:
        return self.by.get(key, 0.0) / self.span_s

    def count(self, key: str) -> float:
        """Returns the increase of an event counter as a whole number. Before rounding, the increase may be fractional,
        because it is interpolated at the edges of the window."""
        return float(round(self.by.get(key, 0.0)))

    def count_rate(self, key: str) -> float:
        return self.count(key) / self.span_s

    def volume(self, key: str, of: str) -> float:
        """Returns the increase of a counter of bytes or seconds. `of` is the counter of the events that caused the
        increase. `count` rounds the number of events, so the increase is scaled by the same factor."""
        events = self.by.get(of, 0.0)
        return self.by.get(key, 0.0) * self.count(of) / events if events > 0 else 0.0

    def ratio(self, over: str, under: str) -> float | None:
        """Returns the increase of the counter `over` divided by the increase of the counter `under`. Returns None if
        `under` did not change."""
        below = self.by.get(under, 0.0)
        return self.by.get(over, 0.0) / below if below > 0 else None


def growth(readings: Sequence[SamplePoint], window_s: float) -> CounterGrowth | None:
    """Returns the increase of every counter from 0 to `window_s`, interpolated between samples. Returns None without
    two samples.

    A counter that is missing from the first samples is assumed to have started at 0. A counter that decreased was
    reset, by hand or with its device. Such a counter is left out, because its increase is unknown.
    """
    if len(readings) < 2:
        return None
    start = max(0.0, readings[0].t_s)
    end = min(window_s, readings[-1].t_s)
    if end <= start:
        return None
    first, last = _at(readings, start), _at(readings, end)
    reset = {key for before, after in pairwise(readings) for key in _fell(before, after)}
    by = {key: max(0.0, value - first.get(key, 0.0)) for key, value in last.items() if key not in reset}
    return CounterGrowth(end - start, by)


def _fell(before: SamplePoint, after: SamplePoint) -> list[str]:
    """Returns the counters that were reset between two samples.

    A small decrease is not a reset: idle time may decrease by a tick (proc_stat(5)), and a sum over processes decreases
    when one of them ends.
    """
    return [key for key, value in before.values.items() if after.values.get(key, value) < value / 2]


def _at(readings: Sequence[SamplePoint], t_s: float) -> Values:
    """Returns the values at `t_s`, interpolated between the samples before and after it."""
    for before, after in pairwise(readings):
        if before.t_s <= t_s <= after.t_s:
            gap = after.t_s - before.t_s
            part = (t_s - before.t_s) / gap if gap > 0 else 1.0
            return {
                key: before.values.get(key, 0.0) + part * (value - before.values.get(key, 0.0))
                for key, value in after.values.items()
            }
    return readings[-1].values


def steps(readings: Sequence[SamplePoint]) -> list[tuple[float, CounterGrowth]]:
    """Returns the increase of counters between neighbouring samples, with the middle of each period as its time.

    Samples in quick succession (such as the extra samples at the edges of the window) are merged, because counters in
    ticks of 1 or 10 ms are too coarse for short periods.
    """
    kept: list[SamplePoint] = []
    shortest = median(b.t_s - a.t_s for a, b in pairwise(readings)) / 2 if len(readings) > 1 else 0.0
    for point in readings:
        if not kept or point.t_s - kept[-1].t_s >= max(shortest, 1e-9):
            kept.append(point)
    grown = []
    for before, after in pairwise(kept):
        by = {key: max(0.0, value - before.values.get(key, 0.0)) for key, value in after.values.items()}
        grown.append(((before.t_s + after.t_s) / 2, CounterGrowth(after.t_s - before.t_s, by)))
    return grown


def rate_series(
    name: str, grown: Sequence[tuple[float, CounterGrowth]], value: Callable[[CounterGrowth], float | None]
) -> Series:
    """Returns a time series of `value` with one point for each step. Steps without a value are left out."""
    pairs = [(t_s, number) for t_s, step in grown if (number := value(step)) is not None]
    return Series(name, tuple(t for t, _ in pairs), tuple(v for _, v in pairs))


def rate_of(key: str) -> Callable[[CounterGrowth], float]:
    """Returns a function for `rate_series`: the increase of a counter per second."""
    return lambda grown: grown.rate(key)


def count_rate_of(key: str) -> Callable[[CounterGrowth], float]:
    """Returns a function for `rate_series`: the events of a counter per second."""
    return lambda grown: grown.count_rate(key)


def volume_rate_of(key: str, of: str) -> Callable[[CounterGrowth], float]:
    """Returns a function for `rate_series`: `CounterGrowth.volume` per second."""
    return lambda grown: grown.volume(key, of) / grown.span_s


def ratio_of(over: str, under: str) -> Callable[[CounterGrowth], float | None]:
    """Returns a function for `rate_series`: the increase of one counter divided by the increase of another."""
    return lambda grown: grown.ratio(over, under)


def gauge_series(name: str, readings: Sequence[SamplePoint], key: str) -> Series:
    """Returns a time series of a gauge, whose values are used as sampled."""
    pairs = [(point.t_s, point.values[key]) for point in readings if key in point.values]
    return Series(name, tuple(t for t, _ in pairs), tuple(v for _, v in pairs))


def mean_within(readings: Sequence[SamplePoint], key: str, window_s: float) -> float | None:
    """Returns the mean of the readings inside the measured window. Returns None if there are none."""
    values = [point.values[key] for point in readings if key in point.values and 0.0 <= point.t_s <= window_s]
    return sum(values) / len(values) if values else None


def most_within(readings: Sequence[SamplePoint], key: str, window_s: float) -> float | None:
    """Returns the maximum of the readings inside the measured window. Returns None if there are none."""
    return max((point.values[key] for point in readings if 0.0 <= point.t_s <= window_s), default=None)


def last_within(readings: Sequence[SamplePoint], window_s: float) -> SamplePoint | None:
    """Returns the reading nearest the end of the measured window, at most 1 s after the end."""
    before = [point for point in readings if 0.0 <= point.t_s <= window_s + 1.0]
    return min(before, key=lambda point: abs(point.t_s - window_s), default=None)


def by_file(text: str) -> dict[str, str]:
    """Splits a sample of a source whose target is a file pattern. Returns the text of each file by its path."""
    files: dict[str, str] = {}
    for part in ("\n" + text).split("\n==> ")[1:]:
        path, _, content = part.partition("\n")
        files[path] = content
    return files


def rows(text: str) -> list[dict[str, object]]:
    """Returns the rows of a `select to_jsonb(…)`: one JSON object per line."""
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def number(row: dict[str, object], column: str) -> float:
    """Returns a column as a number. Returns 0 if the column is absent or NULL."""
    value = row.get(column)
    return float(value) if isinstance(value, (int, float)) else 0.0


def present(metrics: dict[str, float | None]) -> dict[str, float]:
    """Returns the metrics without those whose value is None because it could not be measured."""
    return {name: value for name, value in metrics.items() if value is not None}
