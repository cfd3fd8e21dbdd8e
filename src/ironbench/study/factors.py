"""Results that depend on the factors of a lab: interactions, names of comparisons, and the table of a two-factor
design.

An interaction shows whether two changes together have a larger or smaller effect than the product of their separate
effects. In a full design, each block measures four configurations: with both changes, with only the first, with only
the second, and with no change. The interaction ratio is (both · neither) / (one · other), which is 1 if effects
multiply (Box, Hunter and Hunter, Statistics for Experimenters, 1978, ch. 10, with ratios in place of differences). The
logarithm of this ratio is averaged over blocks, as for any ratio. Interactions have no verdict, because labs have
verdicts only for declared comparisons.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ironbench.catalogue import part_of
from ironbench.model.finding import GroupRatio
from ironbench.model.lab import NOTHING_ELSE, Configuration, Lab
from ironbench.model.record import Record
from ironbench.model.sample import sampled
from ironbench.records.progress import by_place, first_usable
from ironbench.stats.intervals import LEVEL
from ironbench.stats.ratio import paired
from ironbench.study.archive import Archive
from ironbench.study.curve import metrics_of
from ironbench.study.summarise import Summary


@dataclass(frozen=True, slots=True)
class FactorInteraction(GroupRatio):
    """The interaction of two factors. There is an interaction if the effect of both changes together is not the product
    of their separate effects. The other factors are at their first value.

    The ratio is (both x neither) / (one x other), with its 95% confidence interval.
    """

    metric: str
    levels: Mapping[str, str]
    """The two factors, with the value to which each factor is changed."""
    cells: tuple[str, str, str, str]
    """Configurations with both changes, with only the first, with only the second, and with none."""
    blocks: int
    """Number of blocks that measured all four configurations."""

    @property
    def name(self) -> str:
        return " × ".join(f"{factor}={level}" for factor, level in self.levels.items())


def interactions(lab: Lab, records: Sequence[Record]) -> tuple[FactorInteraction, ...]:
    """Computes interactions of all pairs of values for which a block contains all four configurations.

    Returns nothing unless the design is full.
    """
    if lab.design != "full":
        return ()
    values = values_of(lab.method.metric, records)
    results = []
    for levels, cells in _fours(lab):
        blocks = sorted({block for _, block in values})
        ratios = [
            both[0] * neither[0] / (one[0] * other[0])
            for block in blocks
            if all((cell, block) in values for cell in cells)
            for both, one, other, neither in [[values[cell, block] for cell in cells]]
            if len({machine for _, machine in (both, one, other, neither)}) == 1
        ]
        if ratios:
            result = paired(ratios)
            results.append(
                FactorInteraction(*result.with_interval(LEVEL), lab.method.metric, levels, cells, result.blocks)
            )
    return tuple(results)


def values_of(metric: str, records: Sequence[Record]) -> dict[tuple[str, int], tuple[float, str]]:
    """Returns, for each pair (configuration, block), the metric in the first comparable trial and the machine on which
    this trial ran."""
    values = {}
    for place, attempts in by_place(records).items():
        trial = first_usable(attempts)
        if trial is not None and sampled(trial, metric) and 0 < trial.metrics.get(metric, 0.0) < float("inf"):
            values[place] = trial.metrics[metric], trial.machine
    return values


def _fours(lab: Lab) -> Iterator[tuple[dict[str, str], tuple[str, str, str, str]]]:
    names = {frozenset(setup.cell.levels.items()): setup.cell.name for setup in lab.measurable}
    first = {factor.name: factor.levels[0] for factor in lab.factors}

    def cell(levels: dict[str, str]) -> str | None:
        return names.get(frozenset((first | levels).items()))

    for one, other in itertools.combinations(lab.factors, 2):
        for a, b in itertools.product(one.levels[1:], other.levels[1:]):
            both, first_alone = cell({one.name: a, other.name: b}), cell({one.name: a})
            other_alone, neither = cell({other.name: b}), cell({})
            if both and first_alone and other_alone and neither:
                yield {one.name: a, other.name: b}, (both, first_alone, other_alone, neither)


def named_sides(
    lab: Lab, comparisons: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], tuple[Configuration, Configuration, Configuration]]:
    """Names the sides of each comparison by the factor values that differ, for example `log=memory` and `log=disk`. The
    third name consists of the values that both sides have in common, for example `clients=8`. Only factors that vary in
    the lab are included. Configurations that have names in the lab file keep these names."""
    measured = {value for setup in lab.all_setups for value in setup.cell.levels.items()}
    levels = Counter(factor for factor, _ in measured)
    named: dict[tuple[str, str], tuple[Configuration, Configuration, Configuration]] = {}
    for pair in comparisons:
        sides = lab.configuration(pair[0]), lab.configuration(pair[1])
        cell, baseline = ({factor.name: level for factor, level in side.values} for side in sides)
        apart = [factor for factor in cell if cell[factor] != baseline.get(factor)]
        if apart and cell.keys() == baseline.keys():
            shared = {factor: level for factor, level in cell.items() if levels[factor] > 1 and factor not in apart}
            own, other = (lab.made_of({factor: side[factor] for factor in apart}) for side in (cell, baseline))
            named[pair] = own, other, lab.made_of(shared)
        else:
            named[pair] = *sides, NOTHING_ELSE
    return named


_QUERY = "query_time_s{query="


@dataclass(frozen=True, slots=True)
class FactorCell:
    """A configuration of a two-factor design."""

    first: str
    second: str
    value: Summary
    queries: Mapping[str, Summary]
    """For each query, its time in seconds."""


@dataclass(frozen=True, slots=True)
class FactorValues:
    """Results of a two-factor design in the order of the factor values."""

    first: str
    """Names of the two factors."""
    second: str
    metric: str
    cells: tuple[FactorCell, ...]


def levels(lab: Lab, groups: Sequence[tuple[str, Sequence[Record]]], archive: Archive) -> FactorValues | None:
    """Returns the results of a lab with exactly two factors and a full design. Returns None for other labs.

    `groups`: configuration and its comparable trials.
    """
    if lab.design != "full" or len(lab.factors) != 2:
        return None
    first, second = lab.factors
    trials = dict(groups)
    by_levels = {
        (setup.cell.levels.get(first.name, ""), setup.cell.levels.get(second.name, "")): trials.get(setup.cell.name, ())
        for setup in lab.setups
    }
    cells = []
    for one in first.levels:
        for other in second.levels:
            records = by_levels.get((one, other), ())
            value = metrics_of(records, [lab.method.metric], archive).get(lab.method.metric)
            if value is not None:
                cells.append(FactorCell(one, other, value, _queries(records)))
    return FactorValues(first.name, second.name, lab.method.metric, tuple(cells)) if cells else None


def _queries(records: Sequence[Record]) -> dict[str, Summary]:
    names = sorted({name for record in records for name in record.metrics if name.startswith(_QUERY)})
    return {part_of(name).partition("=")[2]: value for name, value in metrics_of(records, names).items()}
