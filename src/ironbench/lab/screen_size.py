"""Chooses the size of a screen. Estimates the screen's minimum detectable effect and how long its confirmation
takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ironbench import units
from ironbench.errors import InputError
from ironbench.host.fingerprint import content_key, fingerprint
from ironbench.lab import size
from ironbench.lab.size import Planned, Resolution
from ironbench.model.lab import Lab, Stage
from ironbench.model.secrets import Secrets
from ironbench.plan import budget, screen
from ironbench.plan.budget import LabTimes, PairVariation
from ironbench.plan.labfile import DeclaredLab
from ironbench.records import labs, noise
from ironbench.trial.load import estimate
from ironbench.trial.load.estimate import Content
from ironbench.words import counted

EXPECTED = 2
"""Expected number of factors that matter, used for time estimates. Usually few factors matter (Box and Meyer,
Technometrics 28, 1986)."""


def detector(factors: int) -> budget.Detect:
    """Returns a function that computes the minimum detectable effect of one factor. As in the analysis of a screen, the
    effect is corrected for the number of factors."""
    from ironbench.stats.multiplicity import LEVEL
    from ironbench.stats.power import errors_found, likely_spread

    pairs = screen.pairs(factors)

    def detect(spread: PairVariation, trial_s: float, stages: tuple[Stage, ...]) -> float:
        blocks = sum(stage.blocks for stage in stages)
        freedom = pairs * (blocks - 1)
        if freedom < 1:
            return float("inf")
        error = likely_spread(spread.at(trial_s), spread.seen) / math.sqrt(pairs * blocks)
        return math.expm1(errors_found(freedom, LEVEL / factors) * error)

    return detect


@dataclass(frozen=True, slots=True)
class Confirming:
    """Size of a confirmation for a number of factors that matter."""

    factors: int
    cells: int
    least_s: float
    """Time with the minimum number of blocks, in seconds."""
    most_s: float
    """Time with the maximum number of blocks, in seconds."""


def confirming(costs: LabTimes, trial_s: float, factors: int = EXPECTED) -> Confirming:
    """Estimates a confirmation that compares the baseline with each factor separately and with all factors together."""
    cells = factors + (2 if factors > 1 else 1)
    block_s = cells * costs.block_s(trial_s) / len(costs.around_s)
    return Confirming(factors, cells, screen.FIRST_ANALYSIS * block_s, screen.MOST_CONFIRMING * block_s)


def sized(
    draft: Lab,
    declared: DeclaredLab,
    contents: Mapping[str, Content],
    budget_s: float | None,
    secrets: dict[str, Secrets],
) -> Planned:
    """Plans a screen with the declared size, or else with the best size within the budget. Computes the minimum
    detectable effect."""
    known = noise.stored_floors(labs.results())
    spread = size.of_machine(draft.setups, draft.method.metric, known, content_key(fingerprint()))
    detect, lab = detector(len(draft.factors)), draft
    if budget_s is not None:
        lab = _within(draft, declared, contents, budget_s, spread)
    costs = estimate.cells(lab.setups, contents, True)
    stages = lab.method.stages
    trials = screen.trials([setup.cell for setup in lab.setups], stages, declared.seed)
    lab = replace(
        lab,
        trials=trials,
        estimate_s=costs.lab_s(0.0, lab.method.blocks),
        estimate_bytes=estimate.space_bytes(lab.setups, contents, len(trials)),
    )
    trial_s = min(setup.cell.load.duration_s or spread.trial_s for setup in lab.setups)
    found = detect(spread, trial_s, stages)
    target = budget.next_target(found)
    tried = range(lab.method.blocks, screen.MOST_BLOCKS + 1)
    needed = next((count for count in tried if detect(spread, trial_s, (Stage(1, count),)) <= target), None)
    return Planned(lab, secrets, costs, Resolution(found, target, needed, trial_s, spread))


def _within(
    draft: Lab, declared: DeclaredLab, contents: Mapping[str, Content], budget_s: float, spread: PairVariation
) -> Lab:
    """Returns the screen with the best size within the budget. Raises InputError if even the smallest screen exceeds
    the budget."""
    setups = draft.setups
    if any(setup.cell.load.duration_s is None and contents[setup.cell.name].work_s is None for setup in setups):
        raise InputError(
            f"{declared.file}, load.transactions",
            "a budget needs trials with a known duration",
            "use load.duration instead, or measure.repeats without a budget",
        )
    own_times = size.keep_lengths(setups)
    costs, detect = estimate.cells(setups, contents, own_times), detector(len(draft.factors))
    lengths = budget.lengths(size.declared_s(declared, setups), [setup.cell.load.checkpoint_s for setup in setups])
    least = screen.least_blocks(len(draft.factors))
    found = []
    for trial_s in lengths:
        left_s = budget_s - costs.before_s(trial_s) - confirming(costs, trial_s).least_s
        if (count := min(screen.MOST_BLOCKS, int(left_s / costs.block_s(trial_s)))) >= least:
            found.append((detect(spread, trial_s, (Stage(1, count),)), -trial_s, count))
    if not found:
        shortest = min(lengths)
        needed_s = costs.lab_s(shortest, least) + confirming(costs, shortest).least_s
        runs = f"{counted(len(setups), 'run')} of {counted(len(draft.factors), 'factor')} in {counted(least, 'block')}"
        raise InputError(
            f"{declared.file}, budget {units.span(budget_s)}",
            f"{runs}, and new blocks for {EXPECTED} factors that matter, take {units.span(needed_s)}, which is "
            f"{units.span(needed_s - budget_s)} more than the budget",
            f"use a budget of {units.span(budget.spoken_up(needed_s))}, or vary fewer factors",
        )
    _, negative_s, count = min(found)
    lab = replace(draft, method=replace(draft.method, stages=(Stage(1, count),), budget_s=budget_s))
    return lab if own_times else replace(lab, setups=tuple(size.of_length(setup, -negative_s) for setup in setups))
