"""Blocks: every cell once in each, in an order of its own, so that drift favours none of them; the trials
before them, which decide a load, a warm-up or the rates; and observed trials after them. Neither enters a finding."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ironbench.model.lab import Lab, Stage
from ironbench.model.purpose import Purpose
from ironbench.model.system import Cell, Setup, Trial
from ironbench.plan import rates


def trials(
    cells: Sequence[Cell],
    stages: Sequence[Stage],
    seed: int,
    order: str,
    rated: Sequence[Cell] = (),
    rated_blocks: int = 0,
    first: int = 0,
    plots: Mapping[str, str] = {},
) -> tuple[Trial, ...]:
    """Of all stages, in the order they will run; blocks count on from `first` across stages. The first `rated_blocks`
    of them hold the `rated` cells, too.

    `random` is a randomised complete block design (Fisher, The Design of Experiments, 1935, ch. IV): a block's order
    follows from the seed and the block's number alone, so that a later stage does not change what was planned before.
    `plots`: cell → what is hard to change for it; in each block, cells of one plot come together (`plan.commands`).
    """
    trials: list[Trial] = []
    block = first
    for stage in stages:
        for _ in range(stage.blocks):
            here = [*cells, *rated] if block - first < rated_blocks else cells
            in_order = ordered(here, block, seed, order, plots)
            trials += [Trial(cell, block, Purpose.LAB, stage.number) for cell in in_order]
            block += 1
    return tuple(trials)


def ordered(cells: Sequence[Cell], block: int, seed: int, order: str, plots: Mapping[str, str] = {}) -> list[Cell]:
    """The cells of one block in the order they will run: plots in random order, the cells of each in random order."""
    if order == "fixed":
        return list(cells)
    drawn = random.Random(f"{seed}/{block}").sample(list(cells), len(cells))
    each = list(dict.fromkeys(plots.get(cell.name, "") for cell in cells))
    places = random.Random(f"{seed}/{block}/plots").sample(each, len(each))
    return sorted(drawn, key=lambda cell: places.index(plots.get(cell.name, "")))


FIRST = 6
"""Blocks before the first look, where there are as many: fewer carry no verdict."""


def stages(blocks: int, looks: int) -> tuple[Stage, ...]:
    """`blocks` in `looks` parts as equal as can be, the first of at least six where there are as many."""
    if looks <= 1 or blocks < FIRST + looks - 1:
        return (Stage(1, blocks),)
    first = max(FIRST, -(-blocks // looks))
    rest, more = divmod(blocks - first, looks - 1)
    later = [rest + (number < more) for number in range(looks - 1)]
    return tuple(Stage(number, count) for number, count in enumerate((first, *later), 1) if count)


PILOT_S = 30.0
"""60 batches of 5 buckets of 100 ms: MSER-5 needs 50, and looks for the end of the warm-up in the first half."""


def piloted(setups: Sequence[Setup]) -> list[Setup]:
    """Those whose warm-up a pilot decides; a rated cell has the warm-up of the cell that it is."""
    return [setup for setup in setups if setup.cell.load.warmup_auto and not setup.of and not setup.skipped]


def peaks(setups: Sequence[Setup]) -> int:
    """How many trials find the baseline's peak: none where no rate is a share of it."""
    return rates.PEAK_TRIALS if rates.wanted(setups) else 0


def searching(setups: Sequence[Setup]) -> int:
    """About how many trials search for the best load of the cells."""
    return sum(setup.search.expected for setup in setups if setup.search and not setup.skipped)


OBSERVED_S = 10.0
"""Longest observed trial: enough for plans and statement times, and short beside the blocks."""


def observed_trials(lab: Lab) -> list[Trial]:
    """Returns one trial per configuration, watched by observers, that follows blocks by slices; none in other labs.

    All sides draw the same random numbers, as in a block.
    """
    if not lab.method.observed:
        return []
    return [Trial(_observed(setup.cell), 0, Purpose.OBSERVED) for setup in lab.possible]


def _observed(cell: Cell) -> Cell:
    duration_s = min(cell.load.duration_s or OBSERVED_S, OBSERVED_S)
    return replace(cell, load=replace(cell.load, duration_s=duration_s, report_per_statement=True))


def trials_before(lab: Lab) -> int:
    """Trials that a lab needs before its first block; how many a search takes is a guess."""
    return peaks(lab.all_setups) + len(piloted(lab.setups)) + searching(lab.setups)
