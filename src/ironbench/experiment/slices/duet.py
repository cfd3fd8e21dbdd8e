"""A duet: the two systems of a block are driven at once, each on one half of the cores, which they exchange.

Both meet the same noise at the same instant, not a second apart (duet benchmarking: Bulej and others, "Duet
benchmarking: improving measurement accuracy in the cloud", ICPE 2020). What differs between the halves cancels, since
each system has either half as often. What they share besides, such as memory bandwidth, both feel: a pilot decides
whether a duet is more precise than turns.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from ironbench.errors import FailureError
from ironbench.experiment.slices import duet_plan
from ironbench.experiment.slices.duet_plan import Half
from ironbench.experiment.slices.rotations import Rotations
from ironbench.experiment.slices.side import Side
from ironbench.experiment.slices.slice_plan import DUET_RATIOS, DUET_SLICE_S, START_UP_S
from ironbench.experiment.slices.turn import order, started, take, tried
from ironbench.model.lab import Method
from ironbench.model.record import AT_ONCE, DUET_VARIANCE, Record
from ironbench.printer import Printer
from ironbench.stats.slices import Started
from ironbench.words import counted


@dataclass(slots=True)
class Duet:
    """The two systems of a block, which have their turns at once. Takes turns as a `Side` does."""

    sides: Sequence[Side]
    halves: tuple[Half, Half]
    chance: Random
    fixed: bool
    """The first system begins on the first half."""
    exchanged: bool = False
    """Whether the first system is on the second half."""
    _second: bool = False
    """The next slice is the second one of two, between which the halves are exchanged."""
    _again: bool = False
    """It has the halves of the last one, which was dropped."""

    @property
    def in_words(self) -> str:
        first, second = map(len, self.halves)
        many = counted(first, "CPU") if first == second else f"{first} and {second} CPUs"
        return f"each on one half of the cores ({many}), exchanged from slice to slice"

    @property
    def warmup_s(self) -> float | None:
        return max((side.warmup_s for side in self.sides), key=lambda length_s: length_s or 0.0)

    def processes(self) -> Sequence[int]:
        """None of them where those of one system are out of sight."""
        each = [side.processes() for side in self.sides]
        return [pid for pids in each for pid in pids] if all(each) else ()

    def turn(self, start_up_s: float, slice_s: float) -> None:
        """OverError, OfOneError, KeyboardInterrupt."""
        if slice_s > 0:
            if not self._again:
                self.exchanged = not self.exchanged if self._second else self._drawn()
            self._again, self._second = False, not self._second
        self._place(self.exchanged)
        # Who ends first is frozen while the other one's server still works for itself: either one as often.
        take(self.sides[::-1] if self.exchanged else self.sides, start_up_s, slice_s)

    def judge(self, taken: float) -> None:
        for side in self.sides:
            side.judge(taken)

    def forget(self) -> None:
        """The last slice is dropped; the next one has the same halves."""
        for side in self.sides:
            side.forget()
        self._again, self._second = True, not self._second

    def started(self) -> Mapping[str, Started]:
        self._place(self._drawn())
        return started(self.sides)

    def ratio(self) -> float:
        """Logarithm of the first system's throughput over that of the second one, by two slices that are forgotten."""
        first = self._drawn()
        found = []
        for exchanged in (first, not first):
            self._place(exchanged)
            found.append(_ratio(tried(self.sides, ((START_UP_S, DUET_SLICE_S),)), self.sides))
        return sum(found) / len(found)

    def release(self) -> None:
        """Both may use all CPUs again."""
        every = tuple(sorted(os.sched_getaffinity(0)))
        for side in self.sides:
            side.move(every, second_half=False)

    def _drawn(self) -> bool:
        return False if self.fixed else self.chance.random() < 0.5

    def _place(self, exchanged: bool) -> None:
        for side, second in zip(self.sides, (exchanged, not exchanged), strict=True):
            side.move(self.halves[second], second_half=second)


def variance(both: Duet) -> float:
    """That of a duet's log ratios over that of turns in the same time: turns have one slice of each system, a duet two
    of both. 1 where turns do not vary. OverError, OfOneError, KeyboardInterrupt."""
    ways: dict[str, list[float]] = {"turns": [], "duet": []}
    for _ in range(DUET_RATIOS):
        for way in both.chance.sample(sorted(ways), len(ways)):
            if way == "duet":
                ways[way].append(both.ratio())
                continue
            both.release()
            turns = order(both.sides, both.chance, both.fixed)
            done = {name: of for side in turns for name, of in tried([side], ((START_UP_S, DUET_SLICE_S),)).items()}
            ways[way].append(_ratio(done, both.sides))
    of_turns, of_duet = (float(np.var(ways[way], ddof=1)) for way in ("turns", "duet"))
    return of_duet / of_turns if of_turns > 0 else 1.0


def warmed_up(
    sides: Sequence[Side], chance: Random, method: Method, before: Record | None, printer: Printer
) -> Rotations:
    """The rotations of a block whose systems have warmed up: by turns, or of both at once where a duet is asked for and
    its pilot found that more precise; in the first block the pilot is asked, `before` is a record of an earlier one.
    FailureError: there are too few cores now; errors of turns."""
    turns = Rotations(sides, chance, method.order == "fixed")
    for side in sides:
        if before is not None and before.block == side.plan.trials[0].block:  # its block did not come out whole
            side.duet_variance = before.metrics.get(DUET_VARIANCE)
    if not method.duet or (before is not None and AT_ONCE not in before.conditions):
        turns.warm_up()
        return turns
    there = duet_plan.cpus()
    if there is None:
        hint = 'give it two, or write method = "slices"'
        raise FailureError("duet", "this process may use one core alone now", hint)
    both = Duet(sides, there, chance, turns.fixed)
    if before is None:
        turns.warm_up()
        try:
            both.release()
        except FailureError as error:  # a server of another user, and no right to choose its CPUs
            printer.say(f"  no duet: {error}")
            return turns
        share = variance(both)
        for side in sides:
            side.duet_variance = share
        printer.say(f"  {pilot_in_words(share)}: {'both are driven at once' if share < 1 else 'they take turns'}")
        if share >= 1:
            both.release()
            return turns
    for side in sides:
        side.prepared = side.prepared.merge({AT_ONCE: both.in_words})
    rotations = Rotations([both], chance, turns.fixed, duet=both)
    if before is not None:
        rotations.warm_up()
    return rotations


def pilot_in_words(share: float) -> str:
    """Of `variance`."""
    return f"ratios of a duet vary {share:.2f} times as much as those of turns in the same time (variance)"


def _ratio(done: Mapping[str, Sequence[tuple[int, float]]], sides: Sequence[Side]) -> float:
    each = (done[side.cell] for side in sides)
    first, second = (max(1, sum(n for n, _ in of)) / sum(seconds for _, seconds in of) for of in each)
    return math.log(first / second)
