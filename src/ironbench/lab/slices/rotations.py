"""The turns of a block: a pilot chooses the slice length, then rotations are measured and disturbed ones dropped.

A rotation is dropped as a whole, for all systems, and only because of what the machine did, never because of a system's
result. So dropping does not bias the results.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from random import Random

from ironbench import units
from ironbench.lab.slices.side import SliceSide
from ironbench.lab.slices.slice_plan import EARLY_S, LEAST_TURNS, LENGTHS_S, PILOT_TURNS, START_UP_S
from ironbench.model.judging_limits import BUSY
from ironbench.model.note import Note, note
from ironbench.stats.slices import FEW, StartTransactions
from ironbench.trial.observe import disturbance
from ironbench.trial.observe.disturbance import DisturbanceShares
from ironbench.words import counted

MOST_START_UP = 0.01
"""Maximum share of a slice that may be lost to start-up, beyond the start-up that is not measured anyway."""
MOST_DROPPED = 0.25
"""Maximum share of rotations that are repeated. Further disturbed rotations are kept, and the records are flagged."""
SLOW_START = "slow-start"
"""Code of a warning."""
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
    """Disturbed turns that were kept."""
    start_up_s: float | None = None
    """Lower bound of the work lost per turn after the start-up, in seconds, from the pilot; for the worst system."""

    def warm_up(self) -> None:
        """Drives each system's warm-up. DriveEndedError, OneSystemError, KeyboardInterrupt."""
        for side in self._order():
            side.turn(side.warmup_s or START_UP_S, 0.0)

    def pilot(self, longest_s: float) -> float:
        """Returns the shortest slice length with a small enough loss at its start, at most `longest_s`.

        Returns `longest_s` if too few transactions were observed. DriveEndedError, OneSystemError, KeyboardInterrupt.
        """
        found: dict[str, StartTransactions] = {}
        for _ in range(PILOT_TURNS):
            for side in self._order():
                found[side.cell] = found.get(side.cell, StartTransactions(0, 0, 0.0, 0.0)) + side.started()
        # The worst system counts, so a chance finding is as many times as likely as there are systems.
        level = _BY_CHANCE / len(found)
        self.start_up_s = EARLY_S * max(one.surely_lost(level) for one in found.values())
        if any(one.late < FEW for one in found.values()):
            return longest_s
        return chosen(self.start_up_s, longest_s)

    def measure(self, count: int, slice_s: float, show: Callable[[int], None]) -> None:
        """Measures `count` rotations that are kept. DriveEndedError, OneSystemError, KeyboardInterrupt."""
        # Processes that ironbench started are its descendants; an existing server is visible here or not.
        own = {os.getpid(), *(pid for side in self.sides for pid in side.processes())}
        in_sight = all(side.processes() for side in self.sides)
        most_dropped = int(count * MOST_DROPPED)
        kept = 0
        while kept < count:
            taken = [self._turn(side, slice_s, own, in_sight) for side in self._order()]
            disturbed = [one for one in taken if is_disturbed(one)]
            if disturbed and self.dropped < most_dropped:
                for side in self.sides:
                    side.forget()
                self.dropped += 1
                continue
            self.kept_disturbed += disturbed
            kept += 1
            show(kept)

    def warnings(self) -> tuple[Note, ...]:
        """Warnings for the records of all systems, if more rotations were disturbed than could be dropped."""
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

    def in_words(self) -> str:
        """Describes the pilot's result and the dropped rotations; empty without either."""
        found = []
        if self.start_up_s is not None:
            lost = f"at least {units.span(self.start_up_s)}" if self.start_up_s > 0 else "no measurable time"
            found.append(f"a pilot trial chose the slice length; a slice lost {lost} to its start-up")
        if self.dropped:
            found.append(f"{counted(self.dropped, 'rotation')} disturbed by other processes were dropped and repeated")
        return "; ".join(found)

    def _order(self) -> Sequence[SliceSide]:
        return self.sides if self.fixed else self.chance.sample(list(self.sides), len(self.sides))

    def _turn(self, side: SliceSide, slice_s: float, own: Set[int], in_sight: bool) -> DisturbanceShares:
        before = disturbance.read(own)
        side.turn(START_UP_S, slice_s)
        taken = disturbance.taken(before, disturbance.read(own))
        # An invisible server would count as another program. So would kernel threads that write back a system's data,
        # if they are not counted separately: then slices of the system that writes most would be dropped.
        if not in_sight or not taken.counted:
            taken = DisturbanceShares(0.0, taken.steal)
        side.judge(taken.share)
        return taken


def is_disturbed(taken: DisturbanceShares) -> bool:
    """Whether others used too much CPU time, by the same rule as for trials (`record.judge`, "cpu-taken")."""
    return taken.share > BUSY


def chosen(start_up_s: float, longest_s: float = LENGTHS_S[-1]) -> float:
    """Returns the shortest length with a small enough share of start-up, or else the longest."""
    return next((one for one in LENGTHS_S if start_up_s < MOST_START_UP * one and one <= longest_s), longest_s)


def slow_start(start_up_s: float, slice_s: float) -> tuple[Note, ...]:
    """Notes slices that are too short for their start-up, as blocks would have too few longer ones or none are
    allowed."""
    if start_up_s < MOST_START_UP * slice_s:
        return ()
    needed_s = LEAST_TURNS * chosen(start_up_s)
    known = {"lost_s": float(start_up_s), "slice_s": slice_s, "share": float(start_up_s / slice_s)}
    if slice_s >= LENGTHS_S[-1]:
        return (note(SLOW_START, **known),)
    return (note(SLOW_START, **known, least_turns=LEAST_TURNS, needed_s=needed_s),)
