"""A load that changes during a trial: a curve of the rate or of the number of active clients."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any

from msgspec import Meta

from ironbench.model.constraints import Amount, Positive, one_of

WORDS = ("ramp:", "steps:", "sine:", "file:")
"""Prefixes of texts that declare a curve."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Target rate, or number of active clients, as a function of the seconds since the start of the measured window.
    The warm-up runs at the curve's first value."""

    of: Annotated[str, one_of("rate", "clients")]
    """The load parameter that the curve changes: `rate` or `clients`."""
    text: str
    """The curve as the user declared it. For a curve in a file, the text contains the file's name, number of points and
    digest."""
    points: Annotated[tuple[tuple[Amount, Amount], ...], Meta(max_length=1_000_000)] = ()
    """Pairs (second, value). Values between two points are interpolated linearly. Two points at the same second are a
    step. The value of the last point applies until the end."""
    wave: tuple[Amount, Amount, Positive] | None = None
    """Minimum, maximum and period in seconds of a sine wave, which has no points."""

    @property
    def length_s(self) -> float:
        return self.wave[2] if self.wave else self.points[-1][0]

    @property
    def most(self) -> float:
        return self.wave[1] if self.wave else max(value for _, value in self.points)

    @property
    def is_ramp(self) -> bool:
        """Whether the curve rises from one value to a higher one in a single straight line."""
        return len(self.points) == 2 and self.points[0][1] < self.points[1][1]

    def value(self, at_s: float) -> float:
        if self.wave:
            low, high, period_s = self.wave
            return (low + high) / 2 - (high - low) / 2 * math.cos(math.tau * at_s / period_s)
        place = bisect.bisect_right([second for second, _ in self.points], at_s)
        if place == len(self.points):
            return self.points[-1][1]
        (start, low), (end, high) = self.points[place - 1], self.points[place]
        return low + (high - low) * (at_s - start) / (end - start)

    def mean(self, from_s: float, to_s: float) -> float:
        """Returns the mean value between two seconds of the window."""
        return (self._area(to_s) - self._area(from_s)) / (to_s - from_s)

    def _area(self, until_s: float) -> float:
        if self.wave:
            low, high, period_s = self.wave
            swing = (high - low) / 2 * period_s / math.tau * math.sin(math.tau * until_s / period_s)
            return (low + high) / 2 * until_s - swing
        area = max(0.0, until_s - self.length_s) * self.points[-1][1]
        for (start, low), (end, high) in pairwise(self.points):
            if (long := min(end, until_s) - start) > 0:
                area += long * (low + (high - low) * long / (end - start) / 2)
        return area

    def pieces(self, warmup_s: float, duration_s: float) -> list[dict[str, Any]]:
        """Returns the pieces of the curve, starting with the warm-up, in the form that
        crates/ironbench-core/src/measure/curve.rs expects."""
        first = self.wave[0] if self.wave else self.points[0][1]
        pieces = [{"kind": "line", "seconds": warmup_s, "from": first, "to": first}] if warmup_s > 0 else []
        if self.wave:
            low, high, period_s = self.wave
            wave = {"kind": "wave", "seconds": period_s, "low": low, "high": high}
            return pieces + [wave] * math.ceil(duration_s / period_s)
        return pieces + [
            {"kind": "line", "seconds": end - start, "from": low, "to": high}
            for (start, low), (end, high) in pairwise(self.points)
            if end > start
        ]
