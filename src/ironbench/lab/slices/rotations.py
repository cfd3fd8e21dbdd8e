"""The turns of a block: a pilot that chooses the length of slices, then rotations, of which disturbed ones are dropped.

A rotation is dropped as a whole, for all systems alike, by what the machine did and never by what a system achieved: so
that what is left is no choice of results.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from random import Random

from ironbench import units
from ironbench.lab.slices.side import SliceSide
from ironbench.lab.slices.slice_plan import EARLY_S, LEAST_TURNS, LENGTHS_S, PILOT_TURNS, START_UP_S
from ironbench.model.limits import BUSY
from ironbench.model.note import Note, note
from ironbench.stats.slices import FEW, Started
from ironbench.trial.observe import disturbance
from ironbench.trial.observe.disturbance import Taken
from ironbench.words import counted

MOST_START_UP = 0.01
"""Share of a slice that its start-up may cost it, beyond what is not measured anyway."""
MOST_DROPPED = 0.25
"""This share of the rotations is repeated at most; then disturbed ones stay, and the records are suspect."""
SLOW_START = "slow-start"
"""Code of a warning."""
_BY_CHANCE = 0.01
"""How often the pilot says of systems that lose nothing that one does."""


@dataclass(slots=True)
class Rotations:
    """Of the systems of one block: each has one turn in a rotation."""

    sides: Sequence[SliceSide]
    chance: Random
    fixed: bool
    """The order in each rotation is that of the lab file."""
    dropped: int = 0
    kept_disturbed: list[Taken] = field(default_factory=list)
    """Turns in which others took the CPU, and that are measured all the same."""
    start_up_s: float | None = None
    """Worth of work that a turn surely loses after the start-up that is not measured, by the pilot; of the worst
    system."""

    def warm_up(self) -> None:
        """OverError, OfOneError, KeyboardInterrupt."""
        for side in self._order():
            side.turn(side.warmup_s or START_UP_S, 0.0)

    def pilot(self, longest_s: float) -> float:
        """Length of slices, `longest_s` at most: the shortest at whose start little enough is surely lost; `longest_s`
        where too few transactions say anything. OverError, OfOneError, KeyboardInterrupt."""
        found: dict[str, Started] = {}
        for _ in range(PILOT_TURNS):
            for side in self._order():
                found[side.cell] = found.get(side.cell, Started(0, 0, 0.0, 0.0)) + side.started()
        # Of several systems the worst one counts, which would be found by chance once for each of them.
        level = _BY_CHANCE / len(found)
        self.start_up_s = EARLY_S * max(one.surely_lost(level) for one in found.values())
        if any(one.late < FEW for one in found.values()):
            return longest_s
        return chosen(self.start_up_s, longest_s)

    def measure(self, count: int, slice_s: float, show: Callable[[int], None]) -> None:
        """So many rotations that are kept. OverError, OfOneError, KeyboardInterrupt."""
        # What ironbench has started is below it; a server that ran already is seen here or not.
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
        """For the records of all systems, where more was disturbed than could be dropped."""
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
        """What the pilot said and what was dropped; empty: neither."""
        found = []
        if self.start_up_s is not None:
            lost = f"at least {units.span(self.start_up_s)}" if self.start_up_s > 0 else "not surely any"
            found.append(f"length by a pilot: a turn lost {lost} of work after its start-up")
        if self.dropped:
            found.append(f"{counted(self.dropped, 'rotation')} disturbed by others, dropped and repeated")
        return "; ".join(found)

    def _order(self) -> Sequence[SliceSide]:
        return self.sides if self.fixed else self.chance.sample(list(self.sides), len(self.sides))

    def _turn(self, side: SliceSide, slice_s: float, own: Set[int], in_sight: bool) -> Taken:
        before = disturbance.read(own)
        side.turn(START_UP_S, slice_s)
        taken = disturbance.taken(before, disturbance.read(own))
        # A server out of sight would count as another program; so would threads of the kernel that write what a system
        # left, where they are not told apart: then the slices of the system that writes most would be dropped.
        if not in_sight or not taken.counted:
            taken = Taken(0.0, taken.steal)
        side.judge(taken.share)
        return taken


def is_disturbed(taken: Taken) -> bool:
    """By the rule of trials (`record.judge`, "cpu-taken")."""
    return taken.share > BUSY


def chosen(start_up_s: float, longest_s: float = LENGTHS_S[-1]) -> float:
    """The shortest length of which the start-up is a small enough share; else the longest."""
    return next((one for one in LENGTHS_S if start_up_s < MOST_START_UP * one and one <= longest_s), longest_s)


def slow_start(start_up_s: float, slice_s: float) -> tuple[Note, ...]:
    """Of slices that could not be as long as their start-up asks for: a block would have had too few of them, or none
    are that long."""
    if start_up_s < MOST_START_UP * slice_s:
        return ()
    needed_s = LEAST_TURNS * chosen(start_up_s)
    known = {"lost_s": float(start_up_s), "slice_s": slice_s, "share": float(start_up_s / slice_s)}
    if slice_s >= LENGTHS_S[-1]:
        return (note(SLOW_START, **known),)
    return (note(SLOW_START, **known, least_turns=LEAST_TURNS, needed_s=needed_s),)
