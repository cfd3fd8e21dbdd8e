"""Plans a screen of many factors. Determines its runs, their order, and the fields that its lab file may have.

In a run, every factor has either the first value of its list or range, which is the baseline's value, or the last
value. A run and its mirror image, in which every factor has the other value, are measured one after another, so that
there is little drift between them. In each block, the order of these pairs is random, and so is the order within each
pair. The design is computed in `ironbench.stats.screening`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from ironbench.errors import InputError, collected
from ironbench.model.lab import BASELINE, Stage
from ironbench.model.purpose import Purpose
from ironbench.model.system import Cell, Trial
from ironbench.plan.labfile import DeclaredLab
from ironbench.words import counted

LEAST_FREEDOM = 8
"""Minimum degrees of freedom for estimating the error. With fewer, an effect must be 1.5 times as large to be
significant."""
USUAL_BLOCKS = 3
MOST_BLOCKS = 10
FIRST_ANALYSIS = 6
"""Minimum number of blocks of the confirmation."""
MOST_CONFIRMING = 30


_PAIRS = (2, 4, 8, 12, 16, 20, 24)
MOST_FACTORS = _PAIRS[-1]


def pairs(factors: int) -> int:
    """Returns the number of pairs of runs in a screen of this many factors."""
    return next(order for order in _PAIRS if order >= factors)


def least_blocks(factors: int) -> int:
    """Returns the minimum number of blocks for estimating the error well enough."""
    return 1 + -(-LEAST_FREEDOM // pairs(factors))


def usual_blocks(factors: int) -> int:
    return max(USUAL_BLOCKS, least_blocks(factors))


def validate(declared: DeclaredLab) -> None:
    """Raises InputError for fields that cannot be used in a screen, for an unsuitable number of factors, and for too
    few repeats."""
    where, measure = declared.file, declared.measure
    fits: list[tuple[bool, str, str, str]] = [
        (
            not declared.claims,
            "expect.claims",
            "a screen chooses its comparisons itself",
            _LAB,
        ),
        (not measure.compare, "measure.compare", "a screen selects the configurations that it compares itself", _LAB),
        (
            measure.order == "random",
            "measure.order",
            "the runs of a screen are always in random order",
            "remove measure.order",
        ),
        (
            measure.rates in ("auto", "none"),
            "measure.rates",
            "a screen measures at a single load",
            "remove measure.rates",
        ),
        (measure.stages is None, "measure.stages", "a screen has no interim analyses", "use measure.repeats instead"),
    ]
    collected(partial(_refuse, f"{where}, {field}", cause, hint) for fits_, field, cause, hint in fits if not fits_)
    count = len(declared.factors)
    if not 2 <= count <= MOST_FACTORS:
        hint = f"use 2 to {MOST_FACTORS} factors; `ironbench lab run` compares the values of a single factor"
        raise InputError(f"{where}, vary", f"a screen cannot have {counted(count, 'factor')}", hint)
    least = least_blocks(count)
    if measure.repeats is not None and measure.repeats < least:
        cause = (
            f"repeats is {measure.repeats}, but a screen of {count} factors needs {least} blocks to estimate its error"
        )
        raise InputError(f"{where}, measure.repeats", cause, f"use measure.repeats = {least} or more")


_LAB = "remove it, or use a separate lab for this question"


def _refuse(where: str, cause: str, hint: str) -> None:
    raise InputError(where, cause, hint)


def runs(declared: DeclaredLab) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields the name and the factor values of every run. The mirror image of a run follows it. The first run is the
    baseline."""
    from ironbench.stats import screening

    factors = declared.factors
    for number, row in enumerate(screening.design(len(factors), pairs(len(factors)))):
        for side, signs in enumerate((row, -row)):
            levels = {one.name: one.names[-1 if sign > 0 else 0] for one, sign in zip(factors, signs, strict=True)}
            yield (BASELINE if number == side == 0 else f"run {2 * number + side + 1}"), levels


def mirrored(cells: Sequence[tuple[str, Mapping[str, str]]]) -> list[tuple[str, str]]:
    """Finds the mirror image of each run. Returns the names of each run and its mirror image as a pair. The order of
    the runs is kept. `cells`: name and factor values of each run."""
    rest, found = list(cells), []
    while rest:
        name, levels = rest.pop(0)
        image = next((other for other, own in rest if all(own[one] != levels[one] for one in levels)), None)
        if image is not None:
            found.append((name, image))
            rest = [one for one in rest if one[0] != image]
    return found


def trials(cells: Sequence[Cell], stages: Sequence[Stage], seed: int) -> tuple[Trial, ...]:
    """Returns the trials of the screen. Every block contains all pairs, and the two runs of a pair are measured one
    after another. The order depends only on the seed and the block."""
    trials: list[Trial] = []
    block = 0
    for stage in stages:
        for _ in range(stage.blocks):
            trials += [Trial(cell, block, Purpose.LAB, stage.number) for cell in ordered(cells, block, seed)]
            block += 1
    return tuple(trials)


def ordered(cells: Sequence[Cell], block: int, seed: int) -> list[Cell]:
    """Returns the configurations of a block in the order in which they run."""
    by_name = {cell.name: cell for cell in cells}
    sides = mirrored([(cell.name, cell.levels) for cell in cells])
    dice = random.Random(f"{seed}/{block}")
    return [by_name[name] for pair in dice.sample(sides, len(sides)) for name in dice.sample(pair, 2)]
