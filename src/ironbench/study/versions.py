"""What differs between two versions or engines besides the version: builds and defaults that can explain a ratio."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ironbench.records.described import settings_of
from ironbench.study.differences import CHANGED, NOT_SET, SETTINGS, Difference, differences, fact_text

LACKS = "lacks"
"""The fact that lists features left out of a build, such as TLS."""


@dataclass(frozen=True, slots=True)
class BesideVersion:
    """Two cells whose servers are of unlike versions or engines, with the baseline's value and the cell's."""

    cell: str
    baseline: str
    rows: tuple[Difference, ...]
    """`lacks`, then settings: what somebody chose for a build or a server."""
    defaults: tuple[Difference, ...] = ()
    """Settings at the default of either version: they are part of the version."""


def beside_version(
    comparisons: Sequence[tuple[str, str]],
    facts: Mapping[str, Mapping[str, str]],
    lacks: Mapping[str, Collection[str]],
) -> tuple[BesideVersion, ...]:
    """Returns none for a comparison with an unmeasured side, or of servers of one version that differ in nothing else.

    `comparisons`: cell and baseline; by name of cell, `facts` as `differences.facts` returns them, and `lacks`: the
    features left out of its build.
    """
    found = []
    for cell, baseline in comparisons:
        before, after = facts.get(baseline), facts.get(cell)
        if not before or not after:
            continue
        rows = differences([before, after])
        if not any((row.room, row.name) in (("engine", "version"), ("system", "engine")) for row in rows):
            continue
        builds = _builds([before, after], [lacks.get(baseline, ()), lacks.get(cell, ())])
        settings, defaults = _settings(before, after)
        if builds or settings or defaults:
            found.append(BesideVersion(cell, baseline, (*builds, *settings), defaults))
    return tuple(found)


def _builds(sides: Sequence[Mapping[str, str]], lacks: Sequence[Collection[str]]) -> tuple[Difference, ...]:
    """Features left out of one build alone; none that the version of a side cannot have."""
    impossible = {feature for side in sides for feature in _impossible(side)}
    known = [tuple(feature for feature in one if feature not in impossible) for one in lacks]
    if set(known[0]) == set(known[1]):
        return ()
    return (Difference("engine", LACKS, tuple(", ".join(one) or NOT_SET for one in known)),)


def _impossible(side: Mapping[str, str]) -> list[str]:
    features = settings_of(side.get("system.engine", "")).build_features
    return [feature for feature, setting in features.items() if f"{SETTINGS}{setting}" not in side]


def _settings(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[tuple[Difference, ...], tuple[Difference, ...]]:
    """Settings that differ: those that a user or whoever created the server chose, and defaults of the versions.

    Defaults of unlike engines are no defaults that changed with the version.
    """
    known = [settings_of(side.get("system.engine", "")) for side in (before, after)]
    names = dict.fromkeys(name for engine in known for name in engine.beside_version)
    pinned = {name for engine in known for name in engine.pinned}
    alike = before.get("system.engine") == after.get("system.engine")
    chosen: list[Difference] = []
    defaults: list[Difference] = []
    for name in names:
        values = [fact_text(side, f"{SETTINGS}{name}") for side in (before, after)]
        if values[0] == values[1]:
            continue
        is_default = alike and name not in pinned and not any(f"{CHANGED}{name}" in side for side in (before, after))
        (defaults if is_default else chosen).append(Difference("engine", name, tuple(values)))
    return tuple(chosen), tuple(defaults)
