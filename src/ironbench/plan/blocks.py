"""Plans the trials of a lab in blocks.

A block measures every configuration once, in random order, so that drift favours no configuration. Trials before the
blocks determine a load, a warm-up or the rates. After the blocks, a lab with slices has trials with observers. Findings
use only the trials of blocks.
"""

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
    """Returns the trials of all stages in the order in which they run. Block numbers start at `first` and continue
    across stages. The first `rated_blocks` blocks also contain the `rated` configurations.

    The order `random` gives a randomised complete block design (Fisher, The Design of Experiments, 1935, ch. IV). The
    order within a block depends only on the seed and the block's number, so adding a stage does not change earlier
    blocks. `plots`: for each configuration, a key of the changes by hand that it needs. In each block, configurations
    with equal keys are measured one after another (`plan.commands`).
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
    """Returns the configurations of a block in the order in which they run. Plots are in random order, and so are the
    configurations of each plot. A plot contains the configurations with the same changes by hand (`plan.commands`)."""
    if order == "fixed":
        return list(cells)
    drawn = random.Random(f"{seed}/{block}").sample(list(cells), len(cells))
    each = list(dict.fromkeys(plots.get(cell.name, "") for cell in cells))
    places = random.Random(f"{seed}/{block}/plots").sample(each, len(each))
    return sorted(drawn, key=lambda cell: places.index(plots.get(cell.name, "")))


FIRST = 6
"""Number of blocks before the first interim analysis. Fewer blocks give no verdict."""


def stages(blocks: int, analyses: int) -> tuple[Stage, ...]:
    """Splits `blocks` into `analyses` stages of similar size. The first stage has at least six blocks. Returns a single
    stage if there are too few blocks for this."""
    if analyses <= 1 or blocks < FIRST + analyses - 1:
        return (Stage(1, blocks),)
    first = max(FIRST, -(-blocks // analyses))
    rest, more = divmod(blocks - first, analyses - 1)
    later = [rest + (number < more) for number in range(analyses - 1)]
    return tuple(Stage(number, count) for number, count in enumerate((first, *later), 1) if count)


PILOT_S = 30.0
"""Length of a pilot in seconds. A pilot of this length has 60 batches of 0.5 s, each of which consists of 5 buckets of
100 ms. MSER-5 needs 50 batches, and searches the first half of them for the end of the warm-up."""


def piloted(setups: Sequence[Setup]) -> list[Setup]:
    """Returns the setups whose warm-up a pilot determines. A fixed-rate configuration has the warm-up of the
    configuration that it repeats."""
    return [setup for setup in setups if setup.cell.load.warmup_auto and not setup.of and not setup.skipped]


def peaks(setups: Sequence[Setup]) -> int:
    """Returns the number of trials that determine the baseline's peak. Returns 0 if no rate is a percentage of the
    peak."""
    return rates.PEAK_TRIALS if rates.wanted(setups) else 0


def searching(setups: Sequence[Setup]) -> int:
    """Returns the approximate number of trials that searches for the best loads take."""
    return sum(setup.search.expected for setup in setups if setup.search and not setup.skipped)


OBSERVED_S = 10.0
"""Maximum length in seconds of a trial with observers. The length is sufficient for plans and statement times, and
short compared with the blocks."""


def observed_trials(lab: Lab) -> list[Trial]:
    """Returns the trials with observers that a lab with slices runs after its blocks. There is one for each
    configuration. Other labs have no such trials. These trials have the same block number, so they use the same random
    numbers.
    """
    if not lab.method.observed:
        return []
    return [Trial(_observed(setup.cell), 0, Purpose.OBSERVED) for setup in lab.measurable]


def _observed(cell: Cell) -> Cell:
    duration_s = min(cell.load.duration_s or OBSERVED_S, OBSERVED_S)
    return replace(cell, load=replace(cell.load, duration_s=duration_s, report_per_statement=True))


def trials_before(lab: Lab) -> int:
    """Returns the number of trials before the first block. For searches, the number is an estimate."""
    return peaks(lab.all_setups) + len(piloted(lab.setups)) + searching(lab.setups)
