"""Computes wait events of an engine's backends from samples of their states. The observers of several engines use this
module."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from ironbench.model.observation import Observation, Series
from ironbench.model.observer import IDLE, OnCores, Samples, Waits
from ironbench.model.points import SamplePoint, Values, by_file, gauge_series, growth, points

_SEEN_LEAST = 0.9
"""Minimum fraction of backends with known scheduler counters. If fewer are known, the counters are not used."""
_IN_RECORD = 12
"""Number of wait events stored in the record. The time series contain all of them."""


class SampledWaits(ABC):
    """Evaluates a source with one line for each wait event. A line contains the event's name, a tab, and the number of
    backends with this event."""

    activity: ClassVar[str]
    """Name of the source with the wait events."""
    backends: ClassVar[str]
    """Name of the source that lists the process or thread ids of the backends."""
    schedstat: ClassVar[str]
    """Name of the source that reads the scheduler counters of the backends (proc_pid_schedstat)."""

    @abstractmethod
    def wait_class(self, event: str) -> str:
        """Returns the wait class of an event."""

    def waits(self, samples: Samples, window_s: float) -> Waits:
        return Waits(self.sampled(samples, window_s), self.counted(samples, window_s), self.wait_class)

    def parse(self, samples: Samples, window_s: float) -> Observation:
        inside = self.sampled(samples, window_s)
        if not inside:
            return Observation()
        mean = _means(inside)
        active = sum(value for event, value in mean.items() if event != IDLE)
        metrics = {"backends_active": active, "backends_idle": mean.get(IDLE, 0.0)}
        metrics["wait_samples_per_s"] = len(inside) / window_s
        shares = {event: value / active for event, value in mean.items() if event != IDLE and active > 0}
        commonest = sorted(shares, key=lambda event: (-shares[event], event))[:_IN_RECORD]
        metrics |= {f"wait_share{{event={event}}}": shares[event] for event in commonest}
        return Observation(metrics, tuple(_series(points(samples.get(self.activity), self.parsed))))

    def sampled(self, samples: Samples, window_s: float) -> list[SamplePoint]:
        """Returns the samples inside the window. Each sample contains the number of backends for each wait event."""
        readings = points(samples.get(self.activity), self.parsed)
        return [point for point in readings if 0.0 <= point.t_s <= window_s]

    def parsed(self, text: str) -> Values:
        """Parses one sample. Returns {} if the sample is unreadable."""
        values: Values = {}
        for line in text.splitlines():
            event, _, count = line.rpartition("\t")
            if event:
                values[event] = float(count)
        return {IDLE: 0.0} if not text.strip() else values

    def counted(self, samples: Samples, window_s: float) -> OnCores | None:
        """Returns the CPU time and the CPU scheduling wait of the backends, from the kernel's counters. Returns None if
        the counters of too many backends cannot be read.

        There are two limitations. A process id from another PID namespace may belong to a different process on this
        machine. A backend that existed only between two readings is not counted.
        """
        seen = samples.get(self.backends, ())
        pids = {line for sample in seen for line in sample.raw.decode().split() if line.isdigit()}
        if not pids:
            return None

        def parse(text: str) -> Values:
            values: Values = {}
            for path, content in by_file(text).items():
                if (pid := path.split("/")[-2]) in pids and len(words := content.split()) > 1:
                    values |= {f"{pid} cpu": float(words[0]), f"{pid} queue": float(words[1])}
            return values

        readings = points(samples.get(self.schedstat), parse)
        # Not all backends need to be in a reading, because some may have ended before the end of the window.
        whole = [point for point in readings if len(point.values) / 2 >= _SEEN_LEAST * len(pids)]
        if (grown := growth(whole, window_s)) is None:
            return None
        summed = {kind: sum(ns for key, ns in grown.by.items() if key.endswith(kind)) for kind in ("cpu", "queue")}
        return OnCores(summed["cpu"] / 1e9 / grown.span_s, summed["queue"] / 1e9 / grown.span_s)


def _means(readings: list[SamplePoint]) -> Values:
    events = {event for point in readings for event in point.values}
    return {event: sum(point.values.get(event, 0.0) for point in readings) / len(readings) for event in events}


def _series(readings: list[SamplePoint]) -> list[Series]:
    """Returns an average for each second. There are 20 samples per second, and each of them contains only a few
    backends."""
    buckets: dict[int, list[SamplePoint]] = {}
    for point in readings:
        buckets.setdefault(int(point.t_s // 1.0), []).append(point)
    each = [SamplePoint(second + 0.5, _shared(_means(inside))) for second, inside in sorted(buckets.items())]
    keys = sorted({key for point in each for key in point.values})
    return [gauge_series(key, [SamplePoint(p.t_s, {key: 0.0} | p.values) for p in each], key) for key in keys]


def _shared(mean: Values) -> Values:
    active = sum(value for event, value in mean.items() if event != IDLE)
    shares = {f"wait_share{{event={event}}}": v / active for event, v in mean.items() if event != IDLE and active > 0}
    return {"backends_active": active, "backends_idle": mean.get(IDLE, 0.0)} | shares
