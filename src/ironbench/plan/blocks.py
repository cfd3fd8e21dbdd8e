"""Blocks: every cell once in each, in an order of its own, so that drift favours none of them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ironbench.model.lab import Stage
from ironbench.model.system import Cell, Trial


def trials(
    cells: Sequence[Cell],
    stages: Sequence[Stage],
    seed: int,
    order: str,
    rated: Sequence[Cell] = (),
    rated_blocks: int = 0,
    first: int = 0,
) -> tuple[Trial, ...]:
    """Of all stages, in the order they will run; blocks count on from `first` across stages. The first `rated_blocks`
    of them hold the `rated` cells, too.

    `random` is a randomised complete block design (Fisher, The Design of Experiments, 1935, ch. IV): a block's order
    follows from the seed and the block's number alone, so that a later stage does not change what was planned before.
    """
    found: list[Trial] = []
    block = first
    for stage in stages:
        for _ in range(stage.blocks):
            here = [*cells, *rated] if block - first < rated_blocks else cells
            found += [Trial(cell, block, "lab", stage.number) for cell in ordered(here, block, seed, order)]
            block += 1
    return tuple(found)


def ordered(cells: Sequence[Cell], block: int, seed: int, order: str) -> list[Cell]:
    """The cells of one block in the order they will run."""
    if order == "fixed":
        return list(cells)
    return random.Random(f"{seed}/{block}").sample(list(cells), len(cells))


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
