"""How far another machine's clock is from ours, and when all begin.

Of many questions for the time, the one that came back soonest knows it best: the answer was given between asking and
hearing, so the middle is wrong by at most half of that (Cristian, "Probabilistic clock synchronization", 1989).

Only the standard library: children of ours run this without site-packages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LEAD_NS = 30_000_000
"""From telling the start to the start, besides what telling takes."""


@dataclass(frozen=True, slots=True)
class ClockReading:
    """One question for the time: sent and heard by our clock, answered by theirs. Nanoseconds since 1970."""

    sent_ns: int
    theirs_ns: int
    heard_ns: int


@dataclass(frozen=True, slots=True)
class Offset:
    """Their clock less ours."""

    ns: int
    error_ns: int
    """It is off by this much at most, where neither clock was set meanwhile."""


def offset(answers: Iterable[ClockReading]) -> Offset:
    """By the answer that took the least time."""
    best = min(answers, key=lambda one: one.heard_ns - one.sent_ns)
    trip_ns = best.heard_ns - best.sent_ns
    return Offset(best.theirs_ns - (best.sent_ns + trip_ns // 2), (trip_ns + 1) // 2)


def begin_ns(now_ns: int, offsets: Sequence[Offset]) -> int:
    """When all can begin, by our clock: when the slowest has heard of it."""
    return now_ns + LEAD_NS + 4 * max((one.error_ns for one in offsets), default=0)


STEADY_NS = 100_000_000
"""A clock that is set is off by more, one that is slewed by less."""


def jump(sent_ns: int, heard_ns: int, begin_ns: int, wait_ns: int) -> int:
    """By how much a clock was set since its offset was asked for; 0: by nothing that matters.

    Of telling the start: sent and heard by our clock; `wait_ns` is what was left until then by theirs.
    """
    latest, earliest = begin_ns - sent_ns + STEADY_NS, begin_ns - heard_ns - STEADY_NS
    return min(0, latest - wait_ns) or max(0, earliest - wait_ns)
