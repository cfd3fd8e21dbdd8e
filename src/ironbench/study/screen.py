"""Results of screening many factors: which factors matter, which value is better, and how certain this is.

An effect is the log ratio of the metric at a factor's last value to the metric at its first value, averaged over all
settings of the other factors (`ironbench.stats.screening`). Holm's correction divides alpha among all factors. The
screen only chooses factors, and the chosen factors are compared in new blocks. The largest of many noisy effects is
overestimated. Therefore, effects are reported only from the new blocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ironbench.catalogue import base_name, metrics
from ironbench.model.finding import GroupRatio
from ironbench.model.lab import SCREEN, Lab
from ironbench.model.note import Note
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record, Status
from ironbench.plan import screen as planned
from ironbench.records.described import losses
from ironbench.records.progress import missing
from ironbench.stats import screening
from ironbench.stats.multiplicity import LEVEL, corrected, divisors
from ironbench.stats.power import errors_found, likely_spread
from ironbench.stats.screening import EffectEstimate
from ironbench.study.factors import values_of

_CHANCE = 0.01
"""Significance level for reporting interactions."""
_MOST = 20.0
"""Maximum log ratio that is reported as a minimum detectable effect. Larger values have no meaning."""


@dataclass(frozen=True, slots=True)
class ScreenedFactor(GroupRatio):
    """The effect of one factor in the screen: the metric at the factor's last value as a multiple of the metric at its
    first value, over all settings of the other factors."""

    name: str
    first: str
    """The factor's value in the baseline."""
    last: str
    """The other value that the screen measured."""
    between: tuple[str, ...]
    """Values between these two that the screen did not measure."""
    error: float
    """Standard error of the ratio's logarithm."""
    confidence: float
    """Confidence level of the interval."""
    p: float
    """P value for no effect, corrected for the number of factors (Holm)."""
    matters: bool
    better: str
    """The better value if the factor matters. Otherwise empty."""
    detectable: float
    """Minimum detectable effect. A screen like this one detects an effect of this relative size with 90% power."""
    blocks: tuple[float, ...]
    """The ratio in each block."""
    losses: tuple[Note, ...] = ()
    """Notes on the better value, if it consists of settings with which data can be lost."""

    @property
    def differs_from_baseline(self) -> bool:
        """Whether the better value differs from the baseline's."""
        return self.matters and self.better == self.last


@dataclass(frozen=True, slots=True)
class Interaction:
    """Evidence that the joint effect of factors differs from the product of their separate effects."""

    p: float
    pairs: tuple[str, ...]
    """Pairs of factors that may have the strongest interaction. The design cannot distinguish between them."""
    factors: tuple[float, ...]
    """For each of these pairs, a ratio that is computed as if only this pair caused the interaction. The ratio is the
    joint effect divided by the product of the separate effects."""


@dataclass(frozen=True, slots=True)
class Screen:
    """Results of the screening stage of a lab."""

    metric: str
    runs: int
    """Number of configurations in the design."""
    blocks: int
    trials: int
    """Number of trials that have finished."""
    missing: int
    factors: tuple[ScreenedFactor, ...]
    """Effects in the order of the lab file. Empty if essential trials are missing."""
    spread: float | None
    """Standard deviation of the log ratio of a pair's two runs, from block to block."""
    freedom: int
    """Degrees of freedom of `spread`."""
    dropped: tuple[str, ...]
    """Names of the pairs of runs that were left out."""
    interaction: Interaction | None
    """Evidence of an interaction, if any."""
    suspect: int
    """Number of flagged trials that are included in the results."""

    @property
    def complete(self) -> bool:
        return not self.missing

    @property
    def matter(self) -> tuple[ScreenedFactor, ...]:
        return tuple(one for one in self.factors if one.matters)


@dataclass(frozen=True, slots=True)
class _Trials:
    """The pairs of runs that were measured."""

    signs: screening.Matrix
    """Matrix with a row for each pair and a column for each factor. The entry is -1 if the factor has its first value
    in the first run of the pair, and 1 if it has its last value."""
    logs: Mapping[tuple[int, int], tuple[float, float]]
    """For each pair of runs in each block, the logarithms of the metric of both runs."""
    blocks: tuple[int, ...]
    """Numbers of the blocks."""

    def differences(self, block: int | None = None) -> list[tuple[int, float]]:
        """Returns the log ratios of every pair, or of the pairs of one block."""
        return [(pair, run - image) for (pair, at), (run, image) in self.logs.items() if block in (None, at)]

    def means(self) -> screening.Matrix:
        """Returns the mean logarithms of each pair, with one row per complete block."""
        pairs = range(len(self.signs))
        whole = [block for block in self.blocks if all((pair, block) in self.logs for pair in pairs)]
        return np.array([[sum(self.logs[pair, block]) / 2 for pair in pairs] for block in whole]).reshape(
            -1, len(pairs)
        )


def screen(lab: Lab, records: Sequence[Record]) -> Screen | None:
    """Analyses the screen. Returns None if the lab is not a screen."""
    if lab.design != SCREEN:
        return None
    due = [trial for trial in lab.trials if trial.stage == 1]
    own = [record for record in records if record.stage == 1 and record.purpose == Purpose.LAB]
    cells = {trial.cell.name: trial.cell.levels for trial in due}
    runs = planned.mirrored([(setup.cell.name, setup.cell.levels) for setup in lab.setups if setup.cell.name in cells])
    signs = np.array(
        [[1.0 if cells[run][one.name] != one.levels[0] else -1.0 for one in lab.factors] for run, _ in runs]
    )
    blocks, values = tuple(sorted({trial.block for trial in due})), values_of(lab.method.metric, own)
    logs = {
        (number, block): (math.log(values[run, block][0]), math.log(values[image, block][0]))
        for block in blocks
        for number, (run, image) in enumerate(runs)
        if (run, block) in values and (image, block) in values and values[run, block][1] == values[image, block][1]
    }
    trials = _Trials(signs, logs, blocks)
    waiting = {(trial.cell.name, trial.block) for trial in missing(due, own)}
    dropped = [
        f"block {block + 1}: {run} and {image}"
        for block in blocks
        for number, (run, image) in enumerate(runs)
        if (number, block) not in logs and waiting.isdisjoint({(run, block), (image, block)})
    ]
    estimates = screening.estimates(signs, trials.differences())
    return Screen(
        metric=lab.method.metric,
        runs=len(cells),
        blocks=len(blocks),
        trials=len(due) - len(waiting),
        missing=len(waiting),
        factors=tuple(_screened(lab, trials, estimates)),
        spread=estimates[0].spread if estimates else None,
        freedom=estimates[0].freedom if estimates else 0,
        dropped=tuple(dropped),
        interaction=_interaction(trials, [one.name for one in lab.factors]),
        suspect=sum(record.status is Status.SUSPECT for record in own),
    )


def of_confirmation(lab: Lab, records: Sequence[Record]) -> tuple[Lab, list[Record]]:
    """Returns the lab and the records without the screening stage, which is reported separately. If the confirmation
    has not started, returns both unchanged."""
    first = next((stage.number for stage in lab.method.stages if stage.added), None)
    if first is None:
        return lab, list(records)
    named = {cell for pair in lab.comparisons for cell in pair}
    # The first stage of the confirmation does not count as added. Only stages that the user added by `lab resume
    # --more` do.
    stages = tuple(
        replace(one, added=one.added and one.number > first) for one in lab.method.stages if one.number >= first
    )
    own = replace(
        lab,
        setups=tuple(setup for setup in lab.setups if setup.cell.name in named),
        method=replace(lab.method, stages=stages),
        trials=tuple(trial for trial in lab.trials if trial.stage >= first),
    )
    return own, [record for record in records if record.stage >= first]


def _screened(lab: Lab, trials: _Trials, estimates: Sequence[EffectEstimate]) -> Iterator[ScreenedFactor]:
    ps = [one.p for one in estimates]
    lossy = {(one.name, level): _losses(lab, one.name, level) for one in lab.factors for level in one.levels}
    shares = divisors(ps, lambda _, divisor: LEVEL / divisor)
    known = metrics().get(base_name(lab.method.metric))
    higher = known is None or known.better == "higher"
    by_block = [_of_block(trials, block) for block in trials.blocks]
    for place, (factor, one, share, p) in enumerate(zip(lab.factors, estimates, shares, corrected(ps), strict=False)):
        level = LEVEL / share
        low, high = one.interval(level)
        matters = one.p <= level
        better = (factor.levels[-1] if (one.effect > 0) == higher else factor.levels[0]) if matters else ""
        least = errors_found(one.freedom, LEVEL / len(estimates)) * likely_spread(one.error, one.freedom + 1)
        yield ScreenedFactor(
            name=factor.name,
            first=factor.levels[0],
            last=factor.levels[-1],
            between=factor.levels[1:-1],
            error=one.error,
            ratio=math.exp(one.effect),
            low=low,
            high=high,
            confidence=1 - level,
            p=p,
            matters=matters,
            better=better,
            detectable=math.expm1(min(least, _MOST)),
            blocks=tuple(math.exp(effects[place]) for effects in by_block if effects is not None),
            losses=lossy.get((factor.name, better), ()),
        )


def _losses(lab: Lab, factor: str, level: str) -> tuple[Note, ...]:
    """Returns notes on settings with which data can be lost. A setting is included if every configuration with this
    factor value has it, and no other configuration has it."""
    at, elsewhere = (
        [
            dict.fromkeys(losses(setup.system))
            for setup in lab.setups
            if factor in setup.cell.levels and (setup.cell.levels[factor] == level) == wanted
        ]
        for wanted in (True, False)
    )
    others = {one for found in elsewhere for one in found}
    return tuple(one for one in (at[0] if at else ()) if one not in others and all(one in found for found in at))


def _of_block(trials: _Trials, block: int) -> screening.Matrix | None:
    """Returns the effects from a single block. Returns None if pairs are missing."""
    pairs = sorted(trials.differences(block))
    if len(pairs) < len(trials.signs):
        return None
    effects: screening.Matrix = trials.signs.T @ np.array([value for _, value in pairs]) / len(pairs)
    return effects


def _interaction(trials: _Trials, names: Sequence[str]) -> Interaction | None:
    strongest = screening.interplay(trials.signs, trials.means())
    if strongest is None or strongest.p > _CHANCE:
        return None
    pairs = tuple(f"{names[a]} × {names[b]}" for a, b in strongest.strongest)
    return Interaction(strongest.p, pairs, strongest.ratios)
