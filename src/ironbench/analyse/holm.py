"""Several comparisons at once, without more false alarms than one (Holm, Scand. Journal of Statistics 6, 1979)."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def divisors(ps: Sequence[float], level: Callable[[int, int], float]) -> tuple[int, ...]:
    """By how many the level is divided for each p value, smallest p first: m, m - 1, … until one is not significant.

    `level(place, divisor)`: the nominal level of that comparison when the chance of a false alarm is shared among so
    many. That one and all after it keep their divisor, so that an interval at its comparison's level misses 1 just
    where Holm rejects.
    """
    found = [0] * len(ps)
    divisor, going = len(ps), True
    for place in _ascending(ps):
        found[place] = divisor
        going = going and ps[place] <= level(place, divisor)
        if going:
            divisor -= 1
    return tuple(found)


def corrected(ps: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p values, at most 1, in the order given."""
    found = [0.0] * len(ps)
    largest = 0.0
    for rank, place in enumerate(_ascending(ps)):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[place]))
        found[place] = largest
    return tuple(found)


def _ascending(ps: Sequence[float]) -> list[int]:
    return sorted(range(len(ps)), key=lambda place: ps[place])
