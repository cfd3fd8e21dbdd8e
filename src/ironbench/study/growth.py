"""Determines how throughput grows with clients. Compares configurations that differ only in the number of clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import msgspec

from ironbench.model.finding import GroupRatio
from ironbench.model.lab import Configuration, Lab
from ironbench.model.record import Record
from ironbench.model.system import Setup
from ironbench.stats.multiplicity import LEAST_BLOCKS, LEVEL
from ironbench.stats.ratio import paired
from ironbench.stats.scalability import Fit, fitted
from ironbench.study.archive import EMPTY, Archive
from ironbench.study.curve import CURVE_METRICS, metrics_of
from ironbench.study.summarise import Summary

ALL = Configuration("all cells")
_Values = dict[tuple[int, str], float]
"""The throughput by block and machine. A lab may continue on a different machine within a block. Trials on two machines
are not paired."""


@dataclass(frozen=True, slots=True)
class GrowthStep(GroupRatio):
    """Throughput with a larger number of clients as a multiple of the throughput with a smaller number, paired by
    block, with its 95% confidence interval."""

    fewer: int
    most: int
    blocks: int
    surely_low: float
    surely_high: float
    """Upper bound of the simultaneous confidence interval; `surely_low` is the lower bound. The interval decides
    whether throughput grows in this step.

    In 95% of labs, all such intervals of a curve contain their true ratios. To ensure this, the error rate of each
    interval is 5% divided by the number of steps (Bonferroni; Dunn, "Multiple Comparisons Among Means", Journal of the
    American Statistical Association 56, 1961).
    """

    @property
    def surely_grows(self) -> bool:
        return self.surely_low > 1

    @property
    def surely_falls(self) -> bool:
        return self.surely_high < 1


@dataclass(frozen=True, slots=True)
class GrowthCourse:
    """The number of clients up to which throughput grew. This is a description and not a verdict. Reports show the
    ordinary intervals and not the simultaneous intervals."""

    first: GrowthStep | None
    """Change of throughput from the fewest clients to `enough`, or None if these are the same number."""
    enough: int
    """Smallest number of clients that is enough: its throughput is significantly higher than with the fewest clients,
    and no larger number has significantly higher throughput."""
    beyond: GrowthStep | None
    """Change of throughput from `enough` to the most clients measured, or None if these are the same number."""


@dataclass(frozen=True, slots=True)
class Growth:
    """One growth curve."""

    name: Configuration
    """The factor values in which the curve differs from the lab's other curves. `ALL` if there is only one curve."""
    trials: tuple[Record, ...]
    """Usable trials, ordered by number of clients."""
    summaries: Mapping[int, Mapping[str, Summary]]
    """For each number of clients, the metrics of a throughput curve."""
    fit: Fit | None
    """Fit of the Universal Scalability Law. The value is None if too few numbers of clients were measured, or for an
    open loop."""
    last_step: GrowthStep | None = None
    """Change of throughput from the second-largest to the largest number of clients. The value is None if no block has
    both, or for an open loop."""
    course: GrowthCourse | None = None
    """Summary of the steps. The value is None if there is no fit, or if two numbers of clients have too few common
    blocks for a verdict."""

    @property
    def grows(self) -> bool:
        """Whether throughput still grows at the largest number of clients, according to both the fitted law and the
        measured last step. The law is not sufficient by itself: if its fitted coherency parameter is 0, its curve rises
        forever, even if the measured points level off or fall.
        """
        fit, step = self.fit, self.last_step
        return fit is not None and step is not None and fit.peak_is_beyond and step.low > 1


def growths(lab: Lab, cells: Sequence[tuple[Setup, Sequence[Record]]], archive: Archive = EMPTY) -> tuple[Growth, ...]:
    """Returns curves with at least two numbers of clients, in declared order. `cells`: setups with their usable
    trials."""
    groups: dict[bytes, list[tuple[Setup, Sequence[Record]]]] = {}
    for setup, records in cells:
        groups.setdefault(_alike(setup), []).append((setup, records))
    curves = [group for group in groups.values() if len(_counts(group)) > 1]
    common = [_common(group) for group in curves]
    growing = []
    for group, levels in zip(curves, common, strict=True):
        apart = {factor: levels[factor] for factor in levels if len({other.get(factor) for other in common}) > 1}
        name = lab.made_of(apart) if apart else ALL
        trials = sorted((one for _, records in group for one in records), key=lambda one: one.cell.load.clients)
        fit = _fit(trials)
        steps = _steps(trials) if fit else {}
        last = list(steps.values())[-1] if steps else None
        growing.append(Growth(name, tuple(trials), _summaries(trials, archive), fit, last, _course(steps)))
    return tuple(growing)


def _summaries(trials: Sequence[Record], archive: Archive) -> dict[int, dict[str, Summary]]:
    counts = dict.fromkeys(record.cell.load.clients for record in trials)
    by_clients = {count: [record for record in trials if record.cell.load.clients == count] for count in counts}
    return {count: metrics_of(own, CURVE_METRICS, archive) for count, own in by_clients.items()}


def _fit(trials: Sequence[Record]) -> Fit | None:
    """Fits the scalability law. Returns None for an open loop, because its throughput is the target rate and not a
    capacity."""
    if any(record.cell.load.rate is not None for record in trials):
        return None
    return fitted(
        [
            (record.cell.load.clients, record.metrics["throughput"])
            for record in trials
            if "throughput" in record.metrics
        ]
    )


def _steps(trials: Sequence[Record]) -> dict[tuple[int, int], GrowthStep | None]:
    """Returns the step for each pair (fewer clients, more clients). The step is None if no block has both numbers."""
    by_block: dict[int, _Values] = {}
    for record in trials:
        values = by_block.setdefault(record.cell.load.clients, {})
        if record.metrics.get("throughput", 0.0) > 0:
            values[record.block, record.machine] = record.metrics["throughput"]
    pairs = list(combinations(sorted(by_block), 2))
    return {(fewer, most): _step(fewer, most, by_block, len(pairs)) for fewer, most in pairs}


def _step(fewer: int, most: int, by_block: Mapping[int, _Values], steps: int) -> GrowthStep | None:
    before, after = by_block[fewer], by_block[most]
    ratios = [after[block] / before[block] for block in sorted(before.keys() & after.keys())]
    if not ratios:
        return None
    result = paired(ratios)
    return GrowthStep(*result.with_interval(LEVEL), fewer, most, result.blocks, *result.interval(LEVEL / steps))


def _course(steps: Mapping[tuple[int, int], GrowthStep | None]) -> GrowthCourse | None:
    known = {pair: step for pair, step in steps.items() if step is not None and step.blocks >= LEAST_BLOCKS}
    if not steps or len(known) < len(steps):
        return None
    fewest, most = min(steps)[0], max(steps)[1]
    surely = [pair for pair, step in known.items() if step.surely_grows]
    grown = [after for before, after in surely if before == fewest] or [fewest]
    beaten = {before for before, _ in surely}
    enough = min((count for count in grown if count not in beaten), default=max(grown))
    return GrowthCourse(known.get((fewest, enough)), enough, known.get((enough, most)))


def _alike(setup: Setup) -> bytes:
    return msgspec.json.encode((replace(setup.system, label=""), setup.choice, setup.cell.load.shape), order="sorted")


def _counts(group: Sequence[tuple[Setup, Sequence[Record]]]) -> set[int]:
    return {record.cell.load.clients for _, records in group for record in records}


def _common(group: Sequence[tuple[Setup, Sequence[Record]]]) -> dict[str, str]:
    """Returns the factor values that all configurations of a curve have in common."""
    first = group[0][0].cell.levels
    same = [factor for factor in first if all(setup.cell.levels.get(factor) == first[factor] for setup, _ in group)]
    return {factor: first[factor] for factor in same}
