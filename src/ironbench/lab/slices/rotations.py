"""The turns of a block: a pilot chooses the slice length, then rotations are measured, and disturbed rotations are
dropped.

A rotation is dropped as a whole, for all systems, and only because of other activity on the machine, never because of a
system's result. Dropping therefore does not bias the results.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from random import Random

from ironbench import units
from ironbench.lab.slices.side import SliceSide
from ironbench.lab.slices.slice_plan import EARLY_S, LEAST_TURNS, LENGTHS_S, PILOT_TURNS, START_UP_S
from ironbench.model.note import Note, note
from ironbench.stats.slices import FEW, StartTransactions
from ironbench.trial.observe import disturbance
from ironbench.trial.observe.disturbance import DisturbanceShares
from ironbench.words import counted

MOST_START_UP = 0.01
"""Maximum fraction of a slice that may be lost to start-up, in addition to `START_UP_S`, which is never measured."""
MOST_DROPPED = 0.25
"""Maximum fraction of rotations that are dropped and repeated. Further disturbed rotations are kept, and the records
are flagged."""
SLOW_START = "slow-start"
"""Code of the warning that slices are too short for their start-up."""
_BY_CHANCE = 0.01
"""Probability that the pilot reports a loss although no system has one."""


@dataclass(slots=True)
class Rotations:
    """Rotations of a block's systems: each system has one turn per rotation."""

    sides: Sequence[SliceSide]
    chance: Random
    fixed: bool
    """Whether each rotation uses the order of the lab file."""
    dropped: int = 0
    kept_disturbed: list[DisturbanceShares] = field(default_factory=list)
    """Disturbed turns that were kept because too many rotations were already dropped."""
    start_up_s: float | None = None
    """Seconds of work that the worst system loses per turn, at least, after the unmeasured start-up (`START_UP_S`);
    None if there was no pilot."""

    def warm_up(self) -> None:
        """Runs each system's warm-up. Raises DriveEndedError, OneSystemError and KeyboardInterrupt."""
        for side in self._order():
            side.turn(side.warmup_s or START_UP_S, 0.0)

    def pilot(self, longest_s: float) -> float:
        """Returns the shortest slice length of which a small enough fraction is lost at the start, at most `longest_s`.

        Returns `longest_s` if too few transactions were observed. Raises DriveEndedError, OneSystemError and
        KeyboardInterrupt.
        """
        found: dict[str, StartTransactions] = {}
        for _ in range(PILOT_TURNS):
            for side in self._order():
                found[side.cell] = found.get(side.cell, StartTransactions(0, 0, 0.0, 0.0)) + side.started()
        # The worst system counts, so the chance of a false result grows with the number of systems.
        level = _BY_CHANCE / len(found)
        self.start_up_s = EARLY_S * max(one.surely_lost(level) for one in found.values())
        if any(one.late < FEW for one in found.values()):
            return longest_s
        return chosen(self.start_up_s, longest_s)

    def measure(self, count: int, slice_s: float, show: Callable[[int], None]) -> None:
        """Measures rotations until `count` of them are kept. Raises DriveEndedError, OneSystemError and
        KeyboardInterrupt."""
        # Processes of this benchmark. Servers that ironbench started are its child processes. An existing server may or
        # may not be visible on this machine.
        own = {os.getpid(), *(pid for side in self.sides for pid in side.processes())}
        in_sight = all(side.processes() for side in self.sides)
        most_dropped = int(count * MOST_DROPPED)
        kept = 0
        while kept < count:
            taken = [self._turn(side, slice_s, own, in_sight) for side in self._order()]
            disturbed = [one for one in taken if one.disturbs]
            if disturbed and self.dropped < most_dropped:
                for side in self.sides:
                    side.forget()
                self.dropped += 1
                continue
            self.kept_disturbed += disturbed
            kept += 1
            show(kept)

    def warnings(self) -> tuple[Note, ...]:
        """Returns a warning for the records of all systems if more rotations were disturbed than could be dropped."""
        if not self.kept_disturbed:
            return ()
        worst = max(self.kept_disturbed, key=lambda one: one.share)
        return (
            note(
                "cpu-taken",
                slices=len(self.kept_disturbed),
                programs=worst.programs,
                steal=worst.steal,
                dropped=self.dropped,
            ),
        )

    def description(self) -> str:
        """Describes the pilot's result and the dropped rotations. Returns an empty text if there are neither."""
        found = []
        if self.start_up_s is not None:
            lost = f"at least {units.span(self.start_up_s)}" if self.start_up_s > 0 else "no measurable time"
            found.append(f"a pilot trial chose the slice length; a slice lost {lost} to its start-up")
        if self.dropped:
            found.append(f"dropped and repeated because of other processes: {counted(self.dropped, 'rotation')}")
        return "; ".join(found)

    def _order(self) -> Sequence[SliceSide]:
        return self.sides if self.fixed else self.chance.sample(list(self.sides), len(self.sides))

    def _turn(self, side: SliceSide, slice_s: float, own: Set[int], in_sight: bool) -> DisturbanceShares:
        before = disturbance.read(own)
        side.turn(START_UP_S, slice_s)
        taken = disturbance.used_between(before, disturbance.read(own))
        # A server that is not visible would count as another program. If kernel threads are not counted separately, the
        # threads that write back a system's data would also count as other programs, and slices of the system that
        # writes most would be dropped.
        if not in_sight or not taken.counted:
            taken = DisturbanceShares(0.0, taken.steal)
        side.judge(taken.share)
        return taken


def chosen(start_up_s: float, longest_s: float = LENGTHS_S[-1]) -> float:
    """Returns the shortest slice length of which start-up takes a small enough fraction, or else the longest length."""
    return next((one for one in LENGTHS_S if start_up_s < MOST_START_UP * one and one <= longest_s), longest_s)


def slow_start(start_up_s: float, slice_s: float) -> tuple[Note, ...]:
    """Returns a note if the slices are too short for their start-up, but longer slices are not possible: there would be
    too few in a block, or the length is already the maximum."""
    if start_up_s < MOST_START_UP * slice_s:
        return ()
    needed_s = LEAST_TURNS * chosen(start_up_s)
    known = {"lost_s": float(start_up_s), "slice_s": slice_s, "share": float(start_up_s / slice_s)}
    if slice_s >= LENGTHS_S[-1]:
        return (note(SLOW_START, **known),)
    return (note(SLOW_START, **known, least_turns=LEAST_TURNS, needed_s=needed_s),)
