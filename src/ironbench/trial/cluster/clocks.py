"""The offset of another machine's clock, and a common start time for all workers.

Among many requests for the time, the request with the shortest round trip is the most accurate: the clock was read
between request and reply, so the midpoint of the two is wrong by at most half of the round trip (Cristian,
"Probabilistic clock synchronization", 1989).

Uses only the standard library, because child processes run this without site-packages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LEAD_NS = 30_000_000
"""Nanoseconds between the arrival of the announcement at the workers and the start. The time that the announcement
takes is added to this."""


@dataclass(frozen=True, slots=True)
class ClockReading:
    """A request for the time of another machine: when the request was sent and answered by this machine's clock, and
    the other machine's time. All times are in nanoseconds since 1970."""

    sent_ns: int
    theirs_ns: int
    heard_ns: int


@dataclass(frozen=True, slots=True)
class Offset:
    """The other machine's clock minus this machine's clock."""

    ns: int
    error_ns: int
    """Maximum error of the offset if neither clock was set in the meantime."""


def offset(answers: Iterable[ClockReading]) -> Offset:
    """Returns the offset from the reply with the shortest round trip."""
    best = min(answers, key=lambda one: one.heard_ns - one.sent_ns)
    trip_ns = best.heard_ns - best.sent_ns
    return Offset(best.theirs_ns - (best.sent_ns + trip_ns // 2), (trip_ns + 1) // 2)


def begin_ns(now_ns: int, offsets: Sequence[Offset]) -> int:
    """Returns the common start time for all workers, by this machine's clock. The time is as early as possible, but
    late enough for all workers to receive the announcement."""
    return now_ns + LEAD_NS + 4 * max((one.error_ns for one in offsets), default=0)


STEADY_NS = 100_000_000
"""Maximum change in nanoseconds of a clock that is being slewed. A clock that was set changes by more."""


def jump(sent_ns: int, heard_ns: int, begin_ns: int, wait_ns: int) -> int:
    """Returns by how many nanoseconds the other clock was set since its offset was measured. Returns 0 if the change is
    negligible.

    `sent_ns`: time at which the start was announced. `heard_ns`: time at which the reply arrived. These two times are
    by this machine's clock. `wait_ns`: time by the other clock between the arrival of the announcement and the start.
    """
    latest, earliest = begin_ns - sent_ns + STEADY_NS, begin_ns - heard_ns - STEADY_NS
    return min(0, latest - wait_ns) or max(0, earliest - wait_ns)
