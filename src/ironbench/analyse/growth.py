"""How cells of a lab that differ in nothing but the number of clients grow with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from ironbench.analyse.ratio import paired
from ironbench.analyse.scalability import Fit, fitted
from ironbench.model.record import Record
from ironbench.model.system import Setup

ALL = "all cells"


@dataclass(frozen=True, slots=True)
class Step:
    """Throughput at the most clients that were measured over that at the next fewer, paired by block."""

    fewer: int
    most: int
    ratio: float
    low: float
    high: float
    """95 % interval, as of any ratio (`ironbench.analyse.ratio`); 0 to infinity below two blocks."""


@dataclass(frozen=True, slots=True)
class Growth:
    """One curve."""

    name: str
    """The levels that tell it from the lab's other curves."""
    trials: tuple[Record, ...]
    """Usable ones, by number of clients."""
    fit: Fit | None
    """The Universal Scalability Law; None with too few numbers of clients, or in an open loop."""
    last_step: Step | None = None
    """None where no block has both, or in an open loop."""

    @property
    def grows(self) -> bool:
        """Whether throughput surely still grows at the most clients: so says the law, and so does what was measured.

        The law alone cannot tell: where coherency comes out at its bound of 0 its curve rises for ever, also through
        points that level off or fall.
        """
        fit, step = self.fit, self.last_step
        return fit is not None and step is not None and fit.peak_clients.low > fit.last and step.low > 1


def growths(cells: Sequence[tuple[Setup, Sequence[Record]]]) -> tuple[Growth, ...]:
    """Curves with at least two numbers of clients, in the order declared; `cells`: setups with their usable trials."""
    groups: dict[bytes, list[tuple[Setup, Sequence[Record]]]] = {}
    for setup, records in cells:
        groups.setdefault(_alike(setup), []).append((setup, records))
    curves = [group for group in groups.values() if len(_counts(group)) > 1]
    common = [_common(group) for group in curves]
    found = []
    for group, levels in zip(curves, common, strict=True):
        apart = [factor for factor in levels if len({other.get(factor) for other in common}) > 1]
        name = " ".join(f"{factor}={levels[factor]}" for factor in apart) or ALL
        trials = sorted((one for _, records in group for one in records), key=lambda one: one.cell.load.clients)
        fit = _fit(trials)
        found.append(Growth(name, tuple(trials), fit, _last_step(trials) if fit else None))
    return tuple(found)


def _fit(trials: Sequence[Record]) -> Fit | None:
    """In an open loop throughput is what was asked for, not what clients can bring about."""
    if any(record.cell.load.rate is not None for record in trials):
        return None
    return fitted(
        [
            (record.cell.load.clients, record.metrics["throughput"])
            for record in trials
            if "throughput" in record.metrics
        ]
    )


def _last_step(trials: Sequence[Record]) -> Step | None:
    fewer, most = sorted({record.cell.load.clients for record in trials})[-2:]
    sides = [
        {one.block: one.metrics["throughput"] for one in trials if one.cell.load.clients == clients and _counts_as(one)}
        for clients in (fewer, most)
    ]
    ratios = [sides[1][block] / value for block, value in sides[0].items() if block in sides[1]]
    if not ratios:
        return None
    found = paired(ratios)
    return Step(fewer, most, found.ratio, *found.interval(0.05))


def _counts_as(record: Record) -> bool:
    return record.metrics.get("throughput", 0.0) > 0


def _alike(setup: Setup) -> bytes:
    return msgspec.json.encode((replace(setup.system, label=""), setup.choice, setup.cell.load.shape), order="sorted")


def _counts(group: Sequence[tuple[Setup, Sequence[Record]]]) -> set[int]:
    return {record.cell.load.clients for _, records in group for record in records}


def _common(group: Sequence[tuple[Setup, Sequence[Record]]]) -> dict[str, str]:
    """Levels that all cells of a curve share."""
    first = group[0][0].cell.levels
    same = [factor for factor in first if all(setup.cell.levels.get(factor) == first[factor] for setup, _ in group)]
    return {factor: first[factor] for factor in same}
