"""How cells of a lab that differ in nothing but the number of clients grow with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from ironbench.analyse.scalability import Fit, fitted
from ironbench.model.record import Record
from ironbench.model.system import Setup

ALL = "all cells"


@dataclass(frozen=True, slots=True)
class Growth:
    """One curve."""

    name: str
    """The levels that tell it from the lab's other curves."""
    trials: tuple[Record, ...]
    """Usable ones, by number of clients."""
    fit: Fit | None
    """The Universal Scalability Law; None with too few numbers of clients, or in an open loop."""


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
        found.append(Growth(name, tuple(trials), _fit(trials)))
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


def _alike(setup: Setup) -> bytes:
    return msgspec.json.encode((replace(setup.system, label=""), setup.choice, setup.cell.load.shape), order="sorted")


def _counts(group: Sequence[tuple[Setup, Sequence[Record]]]) -> set[int]:
    return {record.cell.load.clients for _, records in group for record in records}


def _common(group: Sequence[tuple[Setup, Sequence[Record]]]) -> dict[str, str]:
    """Levels that all cells of a curve share."""
    first = group[0][0].cell.levels
    same = [factor for factor in first if all(setup.cell.levels.get(factor) == first[factor] for setup, _ in group)]
    return {factor: first[factor] for factor in same}
