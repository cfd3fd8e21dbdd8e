"""What to call the two sides of a comparison: the levels in which they differ, and where they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Contrast:
    """`log=memory` against `log=disk`, where `clients=8`."""

    cell: str
    baseline: str
    where: str = ""
    """Levels that both have and other comparisons of the lab do not; empty where nothing needs to be told apart."""

    @property
    def name(self) -> str:
        """Both sides in one line."""
        return f"{self.cell} over {self.baseline}" + (f", at {self.where}" if self.where else "")


def contrasts(
    levels: Mapping[str, Mapping[str, str]], comparisons: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], Contrast]:
    """`levels`: cell name → factor → level. Cells that the lab file names go by their names."""
    found = {pair: _differing(levels.get(pair[0], {}), levels.get(pair[1], {}), *pair) for pair in comparisons}
    named: dict[tuple[str, str], Contrast] = {}
    for pair, contrast in found.items():
        sides = {contrast.cell, contrast.baseline}  # Either way round: a claim may turn a comparison about.
        rivals = [other for other, same in found.items() if {same.cell, same.baseline} == sides]
        shared = _common(pair, levels)
        apart = [
            factor
            for factor in shared
            if len(rivals) > 1 and len({levels.get(other[0], {}).get(factor) for other in rivals}) > 1
        ]
        where = " ".join(f"{factor}={shared[factor]}" for factor in apart)
        named[pair] = Contrast(contrast.cell, contrast.baseline, where)
    return named


def _differing(cell: Mapping[str, str], baseline: Mapping[str, str], name: str, other: str) -> Contrast:
    factors = [factor for factor in cell if factor in baseline and cell[factor] != baseline[factor]]
    named = any(_joined(levels) != called for levels, called in ((cell, name), (baseline, other)))
    if not factors or named or cell.keys() != baseline.keys():
        return Contrast(name, other)
    return Contrast(*(" ".join(f"{factor}={side[factor]}" for factor in factors) for side in (cell, baseline)))


def _joined(levels: Mapping[str, str]) -> str:
    """What a cell is called that has no name of its own."""
    return " ".join(f"{factor}={level}" for factor, level in levels.items())


def _common(pair: tuple[str, str], levels: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    cell, baseline = (levels.get(name, {}) for name in pair)
    return {factor: level for factor, level in cell.items() if baseline.get(factor) == level}
