"""A lab against itself: what differs then is the noise of the machine."""

from __future__ import annotations

import random
from dataclasses import replace

from ironbench.model.lab import Factor, Lab, Stage
from ironbench.model.secrets import Secrets
from ironbench.model.system import Setup, Trial

FACTOR = "side"
SIDES = ("A", "again")
"""The baseline, and the same once more under another name."""


def against_itself(lab: Lab, secrets: dict[str, Secrets], blocks: int) -> tuple[Lab, dict[str, Secrets]]:
    """The lab whose two cells are both the given lab's baseline, in blocks of random order."""
    setup = lab.setup(lab.baseline)
    first, again = (_side(setup, side) for side in SIDES)
    order = random.Random(f"{lab.method.seed}/{lab.series}")
    cells = [first.cell, again.cell]
    trials = [Trial(cell, block, "lab") for block in range(blocks) for cell in order.sample(cells, 2)]
    found = replace(
        lab,
        name=f"{lab.name}-noise",
        question=f"How far apart are two runs of the same here? ({lab.name}, {lab.baseline})",
        factors=(Factor(FACTOR, SIDES),),
        design="one-at-a-time",
        setups=(first, again),
        baseline=first.cell.name,
        comparisons=((again.cell.name, first.cell.name),),
        method=replace(lab.method, stages=(Stage(1, blocks),), order="random"),
        claims=(),
        rated=(),
        rated_comparisons=(),
        trials=tuple(trials),
        estimate_s=0.0,
    )
    own = secrets.get(lab.baseline, Secrets())
    return found, {first.cell.name: own, again.cell.name: own}


def is_one(lab: Lab) -> bool:
    """Whether a lab is one against itself."""
    return lab.factors == (Factor(FACTOR, SIDES),)


def _side(setup: Setup, side: str) -> Setup:
    return replace(setup, cell=replace(setup.cell, name=f"{FACTOR}={side}", levels={FACTOR: side}))
