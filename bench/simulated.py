"""Simulated labs: trials with known truth and known disturbances, and the verdicts of the production code.

All values are logarithms of the metric. As in real labs, the trials of a lab run one after another in randomised
complete blocks, so that a drift or autocorrelation of the machine affects both configurations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ironbench.stats.intervals import t_quantile
from ironbench.stats.multiplicity import LEVEL, levels
from ironbench.stats.power import effect, likely_spread

Values = NDArray[np.float64]
Machine = Callable[[np.random.Generator, int, int], Values]
"""(dice, labs, trials) → contribution of the machine to each trial's log value, with a standard deviation of about
1."""

CANNOT_TELL, FASTER, SLOWER, EQUIVALENT = range(4)


def normal(dice: np.random.Generator, labs: int, trials: int) -> Values:
    return dice.standard_normal((labs, trials))


def drift(dice: np.random.Generator, labs: int, trials: int) -> Values:
    """Each trial is half a standard deviation slower than the trial before, which adds up to ten over 20 trials."""
    return normal(dice, labs, trials) - 0.5 * np.arange(trials)


def autocorrelated(dice: np.random.Generator, labs: int, trials: int) -> Values:
    """AR(1) with coefficient 0.8 from trial to trial."""
    kept = 0.8
    found = normal(dice, labs, trials)
    for trial in range(1, trials):
        found[:, trial] = kept * found[:, trial - 1] + math.sqrt(1 - kept**2) * found[:, trial]
    return found


def heavy(dice: np.random.Generator, labs: int, trials: int) -> Values:
    """Returns Student's t with 3 degrees of freedom."""
    return dice.standard_t(3, (labs, trials)) / math.sqrt(3)


def outliers(dice: np.random.Generator, labs: int, trials: int) -> Values:
    """One trial in ten is slowed by a lognormal amount with a median of three standard deviations."""
    slowed = dice.random((labs, trials)) < 0.1
    return normal(dice, labs, trials) - slowed * 3 * dice.lognormal(0.0, 0.7, (labs, trials))


def steep_drift(dice: np.random.Generator, labs: int, trials: int) -> Values:
    """Each trial is two standard deviations slower than the trial before; findings warn of such a drift
    (`study/verdict.py`)."""
    return normal(dice, labs, trials) - 2.0 * np.arange(trials)


MACHINES: dict[str, Machine] = {
    "normal": normal,
    "linear drift": drift,
    "autocorrelated": autocorrelated,
    "heavy tails (t, 3 df)": heavy,
    "lognormal outliers": outliers,
}


@dataclass(frozen=True, slots=True)
class Simulated:
    """Many similar labs: `logs[lab, block, comparison]` is the log ratio of a configuration and its baseline."""

    logs: Values

    def upto(self, blocks: int) -> tuple[Values, Values]:
        """Returns the mean and standard deviation of the log ratios of the first blocks, for each lab and
        comparison."""
        part = self.logs[:, :blocks]
        return part.mean(axis=1), part.std(axis=1, ddof=1)


def simulated(
    machine: Machine, labs: int, blocks: int, spread: float, truth: float = 0.0, cells: int = 2, seed: int = 1
) -> Simulated:
    """Simulates `labs` labs with a baseline and `cells` - 1 other configurations with the true log ratio `truth`; trial
    noise `spread`."""
    dice = np.random.default_rng(seed)
    values = spread * machine(dice, labs, blocks * cells).reshape(labs, blocks, cells)
    order = dice.permuted(np.broadcast_to(np.arange(cells), (labs, blocks, cells)), axis=2)
    measured = np.take_along_axis(values, order, axis=2)
    return Simulated(measured[:, :, 1:] - measured[:, :, :1] + truth)


@dataclass(frozen=True, slots=True)
class Turns:
    """A block of two interleaved systems. Standard deviations of log values, relative to the whole noise of a slice."""

    slices: int
    """Slices of each system in a block."""
    slow: float
    """Fraction of the variance of a slice that changes slowly."""
    kept: float
    """Correlation of the slow part with the slow part of the next slice, which belongs to the other system (AR(1))."""
    start: float
    """Standard deviation between starts of a system, which slices do not average out."""


def alternating(how: Turns, labs: int, blocks: int, spread: float, truth: float = 0.0, seed: int = 1) -> Simulated:
    """Simulates labs of two configurations by slices, each rotation in random order; `spread`: noise of one slice."""
    dice = np.random.default_rng(seed)
    logs = np.empty((labs, blocks, 1))
    for block in range(blocks):
        turns = 2 * how.slices
        slow = dice.standard_normal((labs, turns))
        for turn in range(1, turns):
            slow[:, turn] = how.kept * slow[:, turn - 1] + math.sqrt(1 - how.kept**2) * slow[:, turn]
        noise = math.sqrt(how.slow) * slow + math.sqrt(1 - how.slow) * dice.standard_normal((labs, turns))
        by_rotation = noise.reshape(labs, how.slices, 2)
        first = dice.integers(0, 2, (labs, how.slices))[:, :, None]
        ours, theirs = (np.take_along_axis(by_rotation, side, axis=2)[:, :, 0] for side in (first, 1 - first))
        starts = how.start * dice.standard_normal((labs, 2))
        logs[:, block, 0] = (ours - theirs).mean(axis=1) + starts[:, 0] - starts[:, 1]
    return Simulated(spread * logs + truth)


def verdicts(labs: Simulated, planned: Sequence[int], margin: float) -> NDArray[np.int_]:
    """Returns the verdict of each lab's only comparison, when the lab stops at the first conclusive interim
    analysis."""
    looks = tuple(planned)
    shape = labs.logs.shape[0]
    found = np.full(shape, CANNOT_TELL)
    for place, blocks in enumerate(looks):
        level, level_equal = (levels(LEVEL, looks, sides)[place] for sides in (2, 1))
        if level <= 0:
            continue
        mean, spread = (value[:, 0] for value in labs.upto(blocks))
        error = spread / math.sqrt(blocks)
        differs = np.abs(mean) >= t_quantile(1 - level / 2, blocks - 1) * error
        alike = math.log1p(margin) - np.abs(mean) >= t_quantile(1 - level_equal, blocks - 1) * error
        now = np.where(differs, np.where(mean > 0, FASTER, SLOWER), np.where(alike, EQUIVALENT, CANNOT_TELL))
        found = np.where(found == CANNOT_TELL, now, found)
    return found


def any_false_alarm(labs: Simulated, planned: Sequence[int]) -> NDArray[np.bool_]:
    """Returns, for each lab, whether any of its comparisons is called faster or slower at any interim analysis, with
    Holm's correction."""
    looks = tuple(planned)
    many = labs.logs.shape[2]
    raised = np.zeros(labs.logs.shape[0], dtype=bool)
    for place, blocks in enumerate(looks):
        # If no comparison differs, Holm's method raises an alarm exactly if its first step does.
        level = levels(LEVEL / many, looks, 2)[place]
        if level > 0:
            mean, spread = labs.upto(blocks)
            bound = t_quantile(1 - level / 2, blocks - 1) / math.sqrt(blocks)
            raised |= (np.abs(mean) >= bound * spread).any(axis=1)
    return raised


def covered(labs: Simulated, blocks: int, truth: float = 0.0) -> NDArray[np.bool_]:
    """Returns, for each lab, whether its 95% confidence interval contains the true ratio."""
    mean, spread = (value[:, 0] for value in labs.upto(blocks))
    return np.abs(mean - truth) <= t_quantile(1 - LEVEL / 2, blocks - 1) * spread / math.sqrt(blocks)


def slowed_by_what_was_stated(machine: Machine, labs: int, blocks: int, spread: float, seed: int) -> Simulated:
    """Simulates labs whose configuration is slower by the minimum detectable effect that an earlier A/A lab
    reported."""
    _, seen = simulated(machine, labs, blocks, spread, seed=seed).upto(blocks)
    stated = effect(blocks, LEVEL) * likely_spread(1.0, blocks) * seen[:, 0]
    # A slowdown of d is a ratio of 1 - d; the stated effect is expm1 of the log difference.
    slowdown = np.log(np.maximum(1 - np.expm1(stated), 1e-6))
    fresh = simulated(machine, labs, blocks, spread, seed=seed + 1)
    return Simulated(fresh.logs + slowdown[:, None, None])


def share(found: NDArray[np.bool_]) -> float:
    return float(np.mean(found))
