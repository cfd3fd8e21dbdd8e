"""How large a difference a lab can resolve: the plan's arithmetic with the analysis' statistics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ironbench.analyse.subjects import work_name
from ironbench.model.lab import Lab, Stage
from ironbench.model.noise import Noise
from ironbench.plan import budget
from ironbench.plan.budget import Cells, Spread
from ironbench.words import in_percent


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a lab of this size can find."""

    detectable: float | None
    """Smallest relative difference found with 90 % power at the last look; None: too few blocks for any verdict."""
    target: float
    """A smaller one that one might ask for,"""
    needed_s: float | None
    """and the time it needs; None: more than 500 blocks."""
    spread: Spread


def detector(comparisons: int) -> budget.Detect:
    """For so many comparisons, corrected as the findings will be."""
    from ironbench.stats import power
    from ironbench.stats.multiplicity import LEVEL, levels

    def detect(spread: Spread, trial_s: float, stages: tuple[Stage, ...]) -> float:
        planned = tuple(sum(stage.blocks for stage in stages[: place + 1]) for place in range(len(stages)))
        level = levels(LEVEL / max(1, comparisons), planned)[-1]
        return power.detectable(spread.at(trial_s), planned[-1], level, spread.seen) or float("inf")

    return detect


def resolution(lab: Lab, cells: Cells, spread: Spread, comparisons: int, looks: int | None) -> Resolution:
    detect = detector(comparisons)
    trial_s = _typical_s(lab)
    found = detect(spread, trial_s, lab.method.stages) if lab.method.blocks >= 6 else None
    target = budget.next_target(found if found is not None else 0.2)
    return Resolution(found, target, budget.needed_s(cells, trial_s, target, looks, spread, detect), spread)


def _typical_s(lab: Lab) -> float:
    """The shortest trial of the lab: it is the noisiest."""
    return min((setup.cell.load.duration_s or 30.0 for setup in lab.setups if not setup.skipped), default=30.0)


def comparisons(lab: Lab) -> int:
    """As many as the findings will correct for."""
    from ironbench.analyse.findings import declared

    return len(declared(lab))


def of_machine(lab: Lab, known: Sequence[Noise], machine: str) -> Spread:
    """What `lab noise` measured on this machine: of this work, else the largest of any; else the assumption."""
    whole = (noise for noise in known if noise.blocks > 1 and 0 < noise.spread < math.inf)
    here = [noise for noise in whole if (noise.machine, noise.metric) == (machine, lab.method.metric)]
    works = {work_name(setup.choice) for setup in lab.setups}
    fitting = [noise for noise in here if noise.work in works] or here
    if not fitting:
        return budget.ASSUMED
    found = max(fitting, key=lambda noise: noise.spread)
    return Spread(
        found.spread, found.trial_s, found.blocks, f"{in_percent(found.spread, 1)} from block to block: {found.source}"
    )
