"""Whether somebody set the machine's clock while a trial ran."""

from __future__ import annotations

import time
from collections.abc import Callable

from ironbench.model.record import Warning

STEP_S = 0.010
"""CLOCK_MONOTONIC is slewed just as CLOCK_REALTIME is but never stepped (clock_gettime(2)), so that their difference
changes by steps alone; reading both takes less than a microsecond."""


class Clock:
    """Watches the difference of the two clocks from now on."""

    def __init__(self, offset_s: Callable[[], float] | None = None) -> None:
        self._offset_s = offset_s or _offset_s
        self._before_s = self._offset_s()

    def warnings(self) -> tuple[Warning, ...]:
        """What a reader must know when the clock was set since."""
        step_s = self._offset_s() - self._before_s
        if abs(step_s) < STEP_S:
            return ()
        text = (
            f"the machine's clock was set by {step_s:+.3f} s during the trial: times of day in this record are off, "
            "durations are not"
        )
        return (Warning("clock-step", text),)


def _offset_s() -> float:
    return (time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)) / 1e9
