"""Compares a configuration with itself (A/A test) to measure the machine's run-to-run variation."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import replace

from ironbench.errors import InputError
from ironbench.lab import size
from ironbench.lab.slices import slice_plan
from ironbench.model.finding import Finding, Noise, floor_of
from ironbench.model.lab import Factor, Lab, Stage
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record, machine_of
from ironbench.model.secrets import Secrets
from ironbench.model.system import Setup, Trial
from ironbench.records.work import work_of_noise
from ironbench.report import wording
from ironbench.stats.multiplicity import LEAST_BLOCKS
from ironbench.study.findings import findings

FACTOR = "side"
SIDES = ("A", "again")
"""Names of the two configurations, which are both the baseline."""


def against_itself(lab: Lab, secrets: dict[str, Secrets], blocks: int) -> tuple[Lab, dict[str, Secrets]]:
    """Returns a lab whose two configurations are both the given lab's baseline, in blocks of random order.

    Raises InputError if the baseline's load is not fixed but searched for.
    """
    setup = lab.setup(lab.baseline)
    if setup.search:
        best = wording.search.search_subject(setup.search.of)
        cause = f"noise is measured at a fixed load, but this lab searches for the best {best}"
        raise InputError(f"load.{setup.search.of}", cause, "set a fixed load in a copy of the lab file")
    first, again = (_side(setup, side) for side in SIDES)
    order = random.Random(f"{lab.method.seed}/{lab.series}")
    cells = [first.cell, again.cell]
    trials = [Trial(cell, block, Purpose.LAB) for block in range(blocks) for cell in order.sample(cells, 2)]
    found = replace(
        lab,
        name=f"{lab.name}-noise",
        question=f"How much do identical runs vary on this machine? ({lab.name}, {lab.baseline})",
        factors=(Factor(FACTOR, SIDES),),
        design="one-at-a-time",
        setups=(first, again),
        baseline=first.cell.name,
        comparisons=((again.cell.name, first.cell.name),),
        method=replace(lab.method, stages=(Stage(1, blocks),), order="random", budget_s=None, observed=False),
        claims=(),
        rated=(),
        rated_comparisons=(),
        trials=tuple(trials),
        estimate_s=0.0,
    )
    if found.method.slice_s is not None:
        contents = {one.cell.name: size.content(one, lab.method.restore) for one in found.setups}
        if why := slice_plan.why_trials(found, contents):
            cause = f"slices are not possible for {lab.baseline}: {why}"
            raise InputError("measure.method", cause, 'write method = "trials" in a copy of the lab file')
    own = secrets.get(lab.baseline, Secrets())
    return found, {first.cell.name: own, again.cell.name: own}


def is_one(lab: Lab) -> bool:
    """Returns whether a lab compares a configuration with itself."""
    return lab.factors == (Factor(FACTOR, SIDES),)


def floors(records: Sequence[Record], lab: Lab) -> tuple[Noise, ...]:
    """Returns the run-to-run variation of the metrics of an A/A lab. Metrics of parts, such as a single script, are not
    included. Returns an empty tuple if there are fewer than six complete blocks. The variation is computed from the
    standard deviation of the log ratio between blocks. With more blocks, the estimate becomes more precise, but not
    smaller.
    """
    found = findings(records, lab, max((record.stage for record in records), default=1))
    usable = [record for record in records if record.status.comparable]
    return tuple(_floor(one, usable, lab) for one in found if one.blocks >= LEAST_BLOCKS and one.low > 0)


def _floor(found: Finding, records: Sequence[Record], lab: Lab) -> Noise:
    setup = lab.setups[0]
    spread = statistics.stdev(math.log(ratio) for _, ratio in found.ratios)
    return Noise(
        machine=machine_of(records[0]),
        work=work_of_noise(setup.choice),
        metric=found.metric,
        blocks=found.blocks,
        spread=spread,
        floor=floor_of(spread),
        measured_at=min(record.started_at for record in records),
        trial_s=statistics.fmean(record.elapsed_s for record in records),
        method=records[0].method,
    )


def _side(setup: Setup, side: str) -> Setup:
    return replace(setup, cell=replace(setup.cell, name=f"{FACTOR}={side}", levels={FACTOR: side}))
