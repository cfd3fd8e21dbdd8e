"""A trial whose load followed a curve: what was asked for and done over time, and the knee that a ramp lets expect."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ironbench.model.curve import Curve
from ironbench.model.record import Record
from ironbench.study.timelines import Timeline

KEPT = 0.95
"""Share of the rate asked for that still counts as finished in time, and of the highest throughput as reached."""
_EARLY = 0.85
"""Share of the ramp within which that is reached, where it is a knee."""
_CHANCE = 4.0
"""Standard deviations that a shortfall exceeds: every point of a ramp is another chance to take noise for a knee."""
_IN_A_ROW = 3
"""Points that must fall behind one after another: one alone may be a checkpoint."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A point of the trial's timeline."""

    t_s: float
    asked: float
    """Mean of the curve over the point's time: transactions per second, or clients."""
    done: float
    """Transactions finished per second."""


@dataclass(frozen=True, slots=True)
class LoadCourse:
    """One trial along its curve."""

    curve: Curve
    moments: tuple[Moment, ...]
    p99_s: tuple[tuple[float, float], ...]
    """(second, 99th percentile of the response times)."""

    @property
    def knee(self) -> float | None:
        """Where a ramp stops bringing more: an estimate, since queues and caches lag behind the load. None: not before
        its end, or no ramp."""
        if not self.curve.is_ramp:
            return None
        return _rate_knee(self.moments) if self.curve.of == "rate" else _clients_knee(self.moments)


def course(record: Record, timeline: Timeline) -> LoadCourse | None:
    """None where the load was steady, or nothing of its course is kept."""
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
    """The rate at the first of several points in a row that finished less than was asked for, by more than chance: at
    random instants as many begin in a while as a Poisson count says, whose variance is its mean."""
    step_s = moments[1].t_s - moments[0].t_s
    behind: list[Moment] = []
    for place, moment in enumerate(moments):
        behind = [*behind, moment] if moment.done < KEPT * moment.asked else []
        asked = step_s * sum(one.asked for one in behind)
        lacking = asked - step_s * sum(one.done for one in behind)
        if len(behind) < _IN_A_ROW or lacking <= _CHANCE * math.sqrt(asked):
            continue
        # A system that caught up later, at a higher load, had stalled: its limit lies above.
        if not _keeps_up(moments[place + 1 :], step_s):
            return behind[0].asked
    return None


def _keeps_up(later: Sequence[Moment], step_s: float) -> bool:
    """Whether some points in a row, without what makes up for an earlier stall, finish what is asked."""
    kept = 0
    for one in later:
        chance = _CHANCE * math.sqrt(one.asked / step_s) if step_s else 0.0
        kept = kept + 1 if KEPT * one.asked <= one.done <= one.asked + chance else 0
        if kept >= _IN_A_ROW:
            return True
    return False


def _clients_knee(moments: Sequence[Moment]) -> float | None:
    """The least clients that reach nearly the highest throughput, each point smoothed by its neighbours."""
    smooth = [
        sum(one.done for one in moments[max(0, place - 1) : place + 2]) / len(moments[max(0, place - 1) : place + 2])
        for place in range(len(moments))
    ]
    first = next(place for place, value in enumerate(smooth) if value >= KEPT * max(smooth))
    # Throughput that grows in a straight line reaches that share near the end, too: more clients might bring more.
    return moments[first].asked if first < _EARLY * len(moments) else None
