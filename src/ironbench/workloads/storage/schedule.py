"""Which passes a trial makes, in order, and how long each lasts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ironbench.workloads.storage.profiles import Test, chosen


@dataclass(frozen=True, slots=True)
class Due:
    """One pass."""

    test: Test
    round: int
    """0-based; a sustained write has one."""
    seconds: float
    alone: int | None = None
    """The only file it works on, where there are several; None: all at the same time."""


def due(options: Mapping[str, str], folders: int, duration_s: float | None = None) -> list[Due]:
    """Every test once, then every test again: what drifts shows in the range of each. Long ones come last.

    With several folders every short pass is made in each of them alone, and then in all together: what they do together
    and cannot have alone is the limit that they share. `duration_s`: of all passes, where the user says it.
    """
    tests = chosen(options["tests"], int(options["mix"]))
    seconds, sustain = float(options["seconds"]), float(options["sustain"])
    ways = (*range(folders), None) if folders > 1 else (None,)
    short = [
        Due(test, number, seconds, way)
        for number in range(int(options["passes"]))
        for test in tests
        if not test.sustained
        for way in ways
    ]
    found = [*short, *(Due(test, 0, sustain) for test in tests if test.sustained)]
    if duration_s is None:
        return found
    scale = duration_s / sum(one.seconds for one in found)
    return [replace(one, seconds=one.seconds * scale) for one in found]
