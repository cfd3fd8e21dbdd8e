"""Measures the rotations of a block. First, a pilot chooses the slice length. Rotations that were disturbed are dropped
and repeated.

A rotation is always dropped for all systems, and only because of other activity on the machine. The results of the
systems play no part, so dropping does not bias them.
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
"""Maximum fraction of a slice that may be lost to start-up. The first `START_UP_S` of each turn are not part of the
slice."""
MOST_DROPPED = 0.25
"""Maximum fraction of rotations that are dropped and repeated. If more are disturbed, they are kept, and the records
are flagged."""
SLOW_START = "slow-start"
"""Code of the warning that slices are too short for their start-up."""
_BY_CHANCE = 0.01
"""Probability that the pilot reports a loss although no system has one."""


@dataclass(slots=True)
class Rotations:
    """The rotations of a block. In a rotation, each system of the block has one turn."""

    sides: Sequence[SliceSide]
    chance: Random
    fixed: bool
    """Whether systems have their turns in the order of the lab file. Otherwise, the order is random in each
    rotation."""
    dropped: int = 0
    kept_disturbed: list[DisturbanceShares] = field(default_factory=list)
    """Disturbances of turns that were kept because the maximum number of rotations was already dropped."""
    start_up_s: float | None = None
    """Lower bound for the seconds of work that a system loses per turn because of slow transactions after `START_UP_S`.
    The value is that of the worst system, or None if there was no pilot."""

    def warm_up(self) -> None:
        """Runs each system's warm-up. Raises DriveEndedError, OneSystemError and KeyboardInterrupt."""
        for side in self._order():
            side.turn(side.warmup_s or START_UP_S, 0.0)

    def pilot(self, longest_s: float) -> float:
        """Measures the start-up of all systems and returns a slice length. The result is the shortest length for which
        the fraction lost to start-up is small enough, and at most `longest_s`. Returns `longest_s` if too few
        transactions were observed. Raises DriveEndedError, OneSystemError and KeyboardInterrupt.
        """
        found: dict[str, StartTransactions] = {}
        for _ in range(PILOT_TURNS):
            for side in self._order():
                found[side.cell] = found.get(side.cell, StartTransactions(0, 0, 0.0, 0.0)) + side.started()
        # The result is the maximum over all systems. Each system is tested at a stricter level, because otherwise more
        # systems would make a false result more likely.
        level = _BY_CHANCE / len(found)
        self.start_up_s = EARLY_S * max(one.surely_lost(level) for one in found.values())
        if any(one.late < FEW for one in found.values()):
            return longest_s
        return chosen(self.start_up_s, longest_s)

    def measure(self, count: int, slice_s: float, show: Callable[[int], None]) -> None:
        """Measures rotations until `count` of them are kept. Raises DriveEndedError, OneSystemError and
        KeyboardInterrupt."""
        # Processes of this benchmark: ironbench itself, with its child processes, and the servers. If an existing
        # server runs on another machine, its processes are not visible.
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
        # In two cases, CPU time of the systems would count as that of other programs: if a server's processes are not
        # visible, and if kernel threads are not counted separately. Kernel threads write back the systems' data, so
        # turns of the system that writes most would be dropped.
        if not in_sight or not taken.counted:
            taken = DisturbanceShares(0.0, taken.steal)
        side.judge(taken.share)
        return taken


def chosen(start_up_s: float, longest_s: float = LENGTHS_S[-1]) -> float:
    """Returns the shortest slice length for which the fraction lost to start-up is small enough. Returns `longest_s` if
    no shorter length is long enough."""
    return next((one for one in LENGTHS_S if start_up_s < MOST_START_UP * one and one <= longest_s), longest_s)


def slow_start(start_up_s: float, slice_s: float) -> tuple[Note, ...]:
    """Returns a note if the slices are too short for their start-up. This happens if the length is already the maximum,
    or if a block would contain too few longer slices."""
    if start_up_s < MOST_START_UP * slice_s:
        return ()
    needed_s = LEAST_TURNS * chosen(start_up_s)
    known = {"lost_s": float(start_up_s), "slice_s": slice_s, "share": float(start_up_s / slice_s)}
    if slice_s >= LENGTHS_S[-1]:
        return (note(SLOW_START, **known),)
    return (note(SLOW_START, **known, least_turns=LEAST_TURNS, needed_s=needed_s),)
