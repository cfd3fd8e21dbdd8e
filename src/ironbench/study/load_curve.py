"""Analyses a trial whose load followed a curve: requested and finished work over time, and the knee of a ramp."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ironbench.model.curve import Curve
from ironbench.model.record import Record
from ironbench.study.timelines import Timeline

KEPT = 0.95
"""Share of the requested rate that counts as sustained, and share of the highest throughput that counts as reached."""
_EARLY = 0.85
"""The highest throughput must be reached within this share of the ramp to count as a knee."""
_CHANCE = 4.0
"""Minimum shortfall in standard deviations. A high value, because each point of a ramp may be mistaken for a knee."""
_IN_A_ROW = 3
"""Number of consecutive points that must fall behind; a single point may be a checkpoint."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A point of the trial's timeline."""

    t_s: float
    asked: float
    """Mean of the load curve over the point's time: transactions per second, or clients."""
    done: float
    """Transactions finished per second."""


@dataclass(frozen=True, slots=True)
class LoadCourse:
    """Course of one trial along its load curve."""

    curve: Curve
    moments: tuple[Moment, ...]
    p99_s: tuple[tuple[float, float], ...]
    """(second, 99th percentile of response times)."""

    @property
    def knee(self) -> float | None:
        """Load at which a ramp stops increasing throughput. This is an estimate, as queues and caches lag behind the
        load.

        Returns None without a ramp, or if throughput grows until the end.
        """
        if not self.curve.is_ramp:
            return None
        return _rate_knee(self.moments) if self.curve.of == "rate" else _clients_knee(self.moments)


def course(record: Record, timeline: Timeline) -> LoadCourse | None:
    """Returns the course of a trial, or None if the load was constant or no timeline is stored."""
    curve = record.cell.load.curve
    lines: Mapping[str, Mapping[float, float]] = {
        line.metric: dict(zip(line.t_s, line.value, strict=True)) for line in timeline.lines
    }
    done = lines.get("throughput", {})
    if curve is None or len(done) < 2:
        return None
    step_s = timeline.step_s
    moments = tuple(Moment(t_s, curve.mean(t_s, t_s + step_s), value) for t_s, value in done.items())
    return LoadCourse(curve, moments, tuple(lines.get("response_time_p99_s", {}).items()))


def _rate_knee(moments: Sequence[Moment]) -> float | None:
    """Returns the rate at the first of several consecutive points with a significant shortfall, or None.

    Random arrivals follow a Poisson distribution, whose variance equals its mean.
    """
    step_s = moments[1].t_s - moments[0].t_s
    behind: list[Moment] = []
    for place, moment in enumerate(moments):
        behind = [*behind, moment] if moment.done < KEPT * moment.asked else []
        asked = step_s * sum(one.asked for one in behind)
        lacking = asked - step_s * sum(one.done for one in behind)
        if len(behind) < _IN_A_ROW or lacking <= _CHANCE * math.sqrt(asked):
            continue
        # A system that later caught up at a higher load had only stalled; its limit is higher.
        if not _keeps_up(moments[place + 1 :], step_s):
            return behind[0].asked
    return None


def _keeps_up(later: Sequence[Moment], step_s: float) -> bool:
    """Whether several consecutive points finish what is requested, not counting work that makes up for a stall."""
    kept = 0
    for one in later:
        chance = _CHANCE * math.sqrt(one.asked / step_s) if step_s else 0.0
        kept = kept + 1 if KEPT * one.asked <= one.done <= one.asked + chance else 0
        if kept >= _IN_A_ROW:
            return True
    return False


def _clients_knee(moments: Sequence[Moment]) -> float | None:
    """Returns the smallest number of clients that nearly reaches the highest throughput, smoothed over neighbours."""
    smooth = [
        sum(one.done for one in moments[max(0, place - 1) : place + 2]) / len(moments[max(0, place - 1) : place + 2])
        for place in range(len(moments))
    ]
    first = next(place for place, value in enumerate(smooth) if value >= KEPT * max(smooth))
    # Linear growth also reaches this share near the end; more clients might then increase throughput further.
    return moments[first].asked if first < _EARLY * len(moments) else None
