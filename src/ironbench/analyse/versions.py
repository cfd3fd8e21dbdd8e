"""What differs between two versions or engines besides the version: builds and defaults that can explain a ratio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ironbench import engines
from ironbench.analyse.differences import Difference, differences

LACKS = "lacks"
"""The fact that lists features left out of a build, such as TLS."""
_SETTINGS = "settings."


@dataclass(frozen=True, slots=True)
class BesideVersion:
    """Two cells whose servers are of unlike versions or engines."""

    cell: str
    baseline: str
    rows: tuple[Difference, ...]
    """`lacks`, then settings, each with the baseline's value and the cell's; never empty."""


def beside_version(
    comparisons: Sequence[tuple[str, str]], facts: Mapping[str, Mapping[str, str]]
) -> tuple[BesideVersion, ...]:
    """Returns none for a comparison with an unmeasured side, or of servers of one version.

    `comparisons`: cell and baseline; `facts`: by name of cell, as `differences.facts` returns them.
    """
    found = []
    for cell, baseline in comparisons:
        sides = [facts.get(baseline), facts.get(cell)]
        if sides[0] and sides[1] and (rows := _rows(sides[0], sides[1])):
            found.append(BesideVersion(cell, baseline, rows))
    return tuple(found)


def _rows(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Difference, ...]:
    rows = differences([before, after])
    if not any((row.room, row.name) in (("engine", "version"), ("system", "engine")) for row in rows):
        return ()
    known = [engines.find(side.get("system.engine", "")) for side in (before, after)]
    telling = [name for engine in known if engine for name in engine.traits.beside_version]
    own = {row.name: row for row in rows if row.room == "engine"}
    named = [own[LACKS]] if LACKS in own else []
    settings = [own[f"{_SETTINGS}{name}"] for name in dict.fromkeys(telling) if f"{_SETTINGS}{name}" in own]
    return (*named, *(replace(row, name=row.name.removeprefix(_SETTINGS)) for row in settings))
